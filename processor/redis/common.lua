-- Numbers are decimal strings throughout: Lua's own lose digits beyond 2^53.
local function below(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

-- read gives a record of a hash, or nil.
local function read(key, field)
  local record = redis.call('HGET', key, field)
  if not record then return nil end
  return cjson.decode(record)
end

local function write(key, field, record)
  local text = cjson.encode(record)
  redis.call('HSET', key, field, text)
  return text
end

-- now is the server's time in microseconds.
local function now()
  local t = redis.call('TIME')
  return t[1] .. string.format('%06d', t[2])
end

-- holds tells whether a lease is the partition's.
local function holds(leases, partition, owner, epoch)
  local had = read(leases, partition)
  return had and owner ~= '' and had.owner == owner and had.epoch == epoch
end

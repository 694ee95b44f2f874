-- KEYS: facts. ARGV: channel, key, version, new version, and the value unless the fact is to go.
-- A fact is kept as its version, a space, and its value.
local had = redis.call('HGET', KEYS[1], ARGV[2]) or ' '
local space = string.find(had, ' ', 1, true)
if string.sub(had, 1, space - 1) ~= ARGV[3] then return {'conflict'} end
local changed = ARGV[3] == '' or string.sub(had, space + 1) ~= ARGV[5]
if ARGV[5] then
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[4] .. ' ' .. ARGV[5])
else
  redis.call('HDEL', KEYS[1], ARGV[2])
end
if changed then redis.call('PUBLISH', ARGV[1], '') end
return {'ok'}

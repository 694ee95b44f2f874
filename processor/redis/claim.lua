-- KEYS: leases. ARGV: channel, new version; then of each lease the partition, owner, epoch, version.
-- Gives the number and the record of each lease that was written.
local function may(had, owner, epoch, version)
  if not had then return version == '' end
  if had.version ~= version then return false end
  if owner ~= '' and owner ~= had.owner then return below(had.epoch, epoch) end
  return not below(epoch, had.epoch)
end

local time, written, changed = now(), {}, false
for i = 3, #ARGV, 4 do
  local partition, owner, epoch, version = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local had = read(KEYS[1], partition)
  if may(had, owner, epoch, version) then
    local number = (i - 3) / 4
    local lease = {owner = owner, epoch = epoch, acquired = time, renewed = time, version = ARGV[2] .. '.' .. number}
    -- A renewal keeps the time; and the clock may have been set back.
    if had and (had.epoch == epoch or below(time, had.acquired)) then lease.acquired = had.acquired end
    if below(time, lease.acquired) then lease.renewed = lease.acquired end
    changed = changed or not had or had.owner ~= owner or had.epoch ~= epoch
    written[#written + 1] = number
    written[#written + 1] = write(KEYS[1], partition, lease)
  end
end
if changed then redis.call('PUBLISH', ARGV[1], '') end
return written

-- KEYS: leases, checkpoints. ARGV: partition, owner, epoch, version, new version, sequence,
-- offset, hub id. An operator forces without a lease: the owner is empty, and so is the epoch.
local partition, owner, epoch, version = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if epoch == '' then
  epoch = '0'
elseif not holds(KEYS[1], partition, owner, epoch) then
  return {'fenced'}
end
local had = read(KEYS[2], partition)
if (had and had.version or '') ~= version then return {'conflict'} end
return {'ok', write(KEYS[2], partition, {
  epoch = epoch, version = ARGV[5], sequence = ARGV[6], offset = ARGV[7], hub = ARGV[8], updated = now(),
})}

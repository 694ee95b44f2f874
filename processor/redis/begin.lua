-- KEYS: leases, checkpoints. ARGV: partition, owner, epoch.
-- Gives the checkpoint's record, or an empty string. The lease fences: it is looked at
-- by every save, in the same script.
if not holds(KEYS[1], ARGV[1], ARGV[2], ARGV[3]) then return {'fenced'} end
return {'ok', redis.call('HGET', KEYS[2], ARGV[1]) or ''}

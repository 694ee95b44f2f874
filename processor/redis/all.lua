-- KEYS: any hash. A script, so that it is asked of the primary, whatever the client does with reads.
return redis.call('HGETALL', KEYS[1])

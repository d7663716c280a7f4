-- cause: what the ledger says of the message; the reason code as 0x99 where it is NULL.
ALTER TABLE rejected ADD COLUMN cause TEXT;

-- uplink: the name of that of several whose fleet refused it.
ALTER TABLE rejected ADD COLUMN uplink TEXT;

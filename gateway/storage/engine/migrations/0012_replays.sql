-- Version 12: subscriptions know whether they are still owed retained messages they asked for.
-- A replay of many takes several turns; one that a crash interrupts begins again.

ALTER TABLE subscription ADD COLUMN awaits_retained INTEGER NOT NULL DEFAULT 0;

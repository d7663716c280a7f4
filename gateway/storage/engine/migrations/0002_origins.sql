-- How the client came whose session or will it is: its listener, NULL for what an earlier Tidegate
-- wrote, whether from this machine (local), and whether it proved its user name (proven).

ALTER TABLE session ADD COLUMN listener TEXT;
ALTER TABLE session ADD COLUMN local INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN proven INTEGER NOT NULL DEFAULT 0;

ALTER TABLE will ADD COLUMN listener TEXT;
ALTER TABLE will ADD COLUMN local INTEGER NOT NULL DEFAULT 0;
ALTER TABLE will ADD COLUMN proven INTEGER NOT NULL DEFAULT 0;

-- What a server shows of work that it alone does, for those who ask another one, and their wish that it stops.
ALTER TABLE under_way ADD COLUMN shown text COLLATE "C";
ALTER TABLE under_way ADD COLUMN is_told_to_stop boolean NOT NULL DEFAULT false;

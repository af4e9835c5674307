-- How often a row of a batch failed in a way that may pass (a network, a 5xx): rows that are asked again because their proxy
-- died, or because the provider asked to wait, lose none of their tries.
ALTER TABLE batch_rows ADD COLUMN retries smallint NOT NULL DEFAULT 0;

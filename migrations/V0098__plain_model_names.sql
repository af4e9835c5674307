-- Workspaces made from now on look models up that name no provider. Those that are there go on refusing them: a request that
-- was refused yesterday shall not cost something today.
ALTER TABLE workspaces ALTER COLUMN settings SET DEFAULT '{"plain_model_names": 1}';

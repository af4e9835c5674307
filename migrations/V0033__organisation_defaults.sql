-- What runs on every request of an organisation: {input_guardrails: [{id, slug}], output_guardrails: [{id, slug}]}.
ALTER TABLE organisations ADD COLUMN defaults jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(defaults) = 'object');

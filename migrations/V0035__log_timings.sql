-- The parts of `gateway_processing_time`, in milliseconds: until the body was read and understood, until the answering target
-- was turned to, what looking into the cache took, and the rest until the head of the answer. Null where nobody measured
-- them: relayed calls, targets that others took the place of, and what older proxies wrote.
ALTER TABLE request_logs
    ADD COLUMN request_parsing_time integer,
    ADD COLUMN pre_processing_time integer,
    ADD COLUMN cache_processing_time integer,
    ADD COLUMN response_parsing_time integer;

//! The control plane over HTTP: the real service, a real Postgres.

#![expect(clippy::unwrap_used, reason = "clippy takes the functions that tests share for ordinary code")]

mod api_keys;
mod audit;
mod authentication;
mod bootstrap;
mod canary;
mod change_feed;
mod concurrency;
mod configs;
mod conformance;
mod db_ssl;
mod deployments;
mod document;
mod every_resource;
mod exclusions;
mod failures;
mod hostile;
mod integration_rows;
mod integrations;
mod invites;
mod jobs;
mod joining;
mod labels;
mod load;
mod mail;
mod members;
mod migrations;
mod model_configs;
mod organisation;
mod outage;
mod process;
mod providers;
mod requests;
mod retention;
mod roles;
mod samples;
mod sealing;
mod secret_managers;
mod secret_references;
mod service;
mod smoke;
mod tokens;
mod users;
mod workspaces;

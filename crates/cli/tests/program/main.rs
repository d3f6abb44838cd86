//! The program as a user runs it: exit statuses, JSON, job files, signals.

mod bench;
mod book;
mod browser;
mod cache;
mod check;
mod checks;
mod common;
mod corpus;
mod damaged;
mod exec;
mod expect;
mod explain;
mod explore;
mod files;
mod groups;
mod images;
mod job;
mod live;
mod memory;
mod pages;
mod profile;
mod run;
mod suite;
mod tensor_maps;

//! Drives the real binary; one file per behaviour.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test starts processes and fails by panicking, also in the functions that tests share"
)]

mod acceptance;
mod add;
mod answers;
mod approval;
mod architecture;
mod ask_user;
mod audit;
mod authority;
mod background_learning;
mod browser;
mod capacity;
mod cells;
mod changed_launch;
mod changes;
mod channels;
mod client_kinds;
mod client_roots;
mod clients;
mod completions;
mod context_cost;
mod dead_client;
mod demo;
mod dialog_text;
mod dialogs;
mod differential;
mod disguise;
#[cfg(target_os = "linux")]
mod disk;
mod documents;
mod entry_variables;
mod eras;
mod executable_names;
mod fake_server;
#[cfg(target_os = "linux")]
mod fault_sweep;
mod fidelity;
mod forecast;
mod forms;
#[cfg(target_os = "linux")]
mod hints;
mod history;
mod home;
mod hostile_archives;
mod hostile_packages;
mod hostile_wheels;
mod import;
mod inbox;
mod init;
mod install;
mod install_failures;
mod install_scripts;
#[cfg(target_os = "linux")]
mod kills;
mod late_answers;
mod lifecycle;
mod links;
mod list;
mod list_changes;
mod lock_file;
mod locks;
mod long_lists;
mod mid_call;
mod newcomer;
mod newcomer_path;
mod notify;
mod offered_tools;
mod offers;
mod orders;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(target_os = "linux")]
mod other_launches;
mod outputs;
#[cfg(target_os = "linux")]
mod oversized;
mod ownership;
mod packages_of_pml;
mod permission_prompt;
mod pinned_tools;
mod pipes;
#[cfg(target_os = "linux")]
mod process;
mod programs;
mod project_trust;
mod provenance;
mod python_agent;
mod questions;
mod readings;
mod real_servers;
#[cfg(target_os = "linux")]
mod recording;
mod release_age;
mod remote;
mod remote_floods;
mod remove;
mod resource_spellings;
mod road_orders;
mod rule_commands;
mod rule_writers;
mod run;
mod run_page;
mod sample_server;
mod sbom;
mod scripted_claude;
mod secrets;
mod seed_000;
mod serve;
#[cfg(target_os = "linux")]
mod shared_asks;
mod short_question;
mod shown_contents;
mod slack;
mod sloppy;
mod stdio;
mod subscriptions;
mod support;
mod surroundings;
#[cfg(target_os = "linux")]
mod tampering;
mod two_clients;
mod uninstall;
mod unreadable_definitions;
mod upgrade_walk;
mod variables_file;
#[cfg(target_os = "linux")]
mod verify;
mod wall_clock;
mod wheels;
mod withdrawn;

//! The private server against real binaries.

use super::*;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

fn folder(mode: u32) -> TempDir {
    tempfile::Builder::new().permissions(fs::Permissions::from_mode(mode)).tempdir().unwrap()
}

fn open_folder() -> TempDir {
    folder(0o755)
}

async fn ask(server: &Server, database: &str, statement: &str) -> Result<String, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(&server.url(database), tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(client.query_one(statement, &[]).await?.get(0))
}

#[tokio::test]
async fn a_second_start_finds_the_data_port_and_password_of_the_first() {
    let folder = open_folder();
    let options = Options::new(folder.path().join("pg"), Purpose::Run);
    let first = Server::start(&options).unwrap();
    first.create_database("kept").await.unwrap();
    first.create_database("kept").await.unwrap();
    ask(&first, "kept", "SELECT 'x' FROM (SELECT 1) AS t").await.unwrap();
    let url = first.url("kept");
    first.stop().unwrap();

    let second = Server::start(&options).unwrap();
    assert!(second.url("kept") == url, "the URL changed");
    assert_eq!(ask(&second, "kept", "SELECT current_database()::text").await.unwrap(), "kept");
    assert_eq!(ask(&second, "kept", "SELECT current_setting('fsync')").await.unwrap(), "on");
    second.stop().unwrap();
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let folder = open_folder();
    let server = Server::start(&Options::new(folder.path(), Purpose::Test)).unwrap();
    let wrong = server.url("postgres").replace(&server.password, "guess");
    assert!(tokio_postgres::connect(&wrong, tokio_postgres::NoTls).await.is_err());
    server.remove().unwrap();
}

#[tokio::test]
async fn a_killed_predecessor_and_a_stale_lock_do_not_stop_the_next_start() {
    let folder = open_folder();
    let options = Options::new(folder.path(), Purpose::Test);
    // Left running by a killed supervisor.
    let orphan = Server::start(&options).unwrap().detach();
    let pid = orphan.postmaster().unwrap();
    let next = Server::start(&options).unwrap();
    assert_ne!(next.postmaster(), Some(pid));
    // Killed with no chance to tidy up, and its number given to a process of somebody else.
    process::signal(next.postmaster().unwrap(), process::Signal::KILL).unwrap();
    assert!(process::wait_until(Duration::from_secs(10), || next.postmaster().is_none()));
    let lock = next.data().join("postmaster.pid");
    let stale = fs::read_to_string(&lock).unwrap();
    let (_, rest) = stale.split_once('\n').unwrap();
    fs::write(&lock, format!("{}\n{rest}", std::process::id())).unwrap();
    let last = Server::start(&options).unwrap();
    assert_eq!(ask(&last, "postgres", "SELECT current_setting('fsync')").await.unwrap(), "off");
    last.remove().unwrap();
}

#[test]
fn joining_takes_a_running_server_and_starts_a_missing_one() {
    let folder = open_folder();
    let options = Options::new(folder.path(), Purpose::Test);
    let (first, was_started) = Server::start_or_join(&options).unwrap();
    assert!(was_started);
    let (second, was_started) = Server::start_or_join(&options).unwrap();
    assert!(!was_started && second.postmaster() == first.postmaster());
    drop(second);
    assert!(first.is_running(), "a joined server does not stop with its guest");
    first.crash().unwrap();
    assert!(!first.is_running());
    first.resume().unwrap();
    assert!(first.is_running());
    first.remove().unwrap();
}

#[test]
fn a_port_taken_meanwhile_is_given_up() {
    let folder = open_folder();
    let options = Options::new(folder.path(), Purpose::Test);
    let first = Server::start(&options).unwrap();
    let port = first.port();
    first.stop().unwrap();
    let _thief = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let second = Server::start(&options).unwrap();
    assert_ne!(second.port(), port);
    second.remove().unwrap();
}

#[test]
fn below_a_closed_folder_the_server_still_starts_and_finds_its_data_again() {
    let closed = folder(0o700);
    let options = Options::new(closed.path().join("pg"), Purpose::Test);
    let first = Server::start(&options).unwrap();
    let home = first.home.clone();
    if rustix::process::geteuid().is_root() {
        assert!(home.starts_with("/var/tmp"), "{}", home.display());
    }
    first.stop().unwrap();
    let second = Server::start(&options).unwrap();
    assert_eq!(second.home, home);
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    second.remove().unwrap();
}

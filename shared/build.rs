//! `migrate.rs` embeds the migrations; without this line a file added there would not be noticed.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}

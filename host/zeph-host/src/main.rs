//! The program `zeph-host`.

fn main() -> std::process::ExitCode {
    zeph_host::cli::main()
}

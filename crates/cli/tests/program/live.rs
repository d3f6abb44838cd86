//! What is seen and what can be done while code is made and kernels run: output, progress, signals, time limits.

use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{COUNTS, EMPTY, ENGINES, Folder, Ran, WRONG, large, prints};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Sends a signal to a child.
pub fn signal(child: &Child, name: &str) {
    let kill = Command::new("sh").args(["-c", &format!("kill -{name} {}", child.id())]).status();
    assert!(kill.unwrap().success());
}

/// What was read from a pipe or a terminal so far; a thread of its own reads on.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    fn of(mut from: impl Read + Send + 'static) -> Heard {
        let heard = Heard::default();
        let all = Arc::clone(&heard.0);
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            // A terminal whose other end is closed gives an error.
            while let Ok(n @ 1..) = from.read(&mut part) {
                all.lock().unwrap().extend_from_slice(&part[..n]);
            }
        });
        heard
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    /// Waits until a text was heard.
    #[track_caller]
    fn wait_for(&self, text: &str) {
        let start = Instant::now();
        while !self.text().contains(text) {
            assert!(start.elapsed() < Duration::from_secs(60), "no `{text}` in `{}`", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A terminal: what is shown on it, and the end that a command gets.
fn terminal() -> (Heard, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let end = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (Heard::of(File::from(master)), end)
}

#[test]
fn what_a_kernel_prints_is_heard_while_it_runs() {
    let f = Folder::with("prints", &prints(".param .u64 to", COUNTS));
    for engine in ENGINES {
        let mut command = f.command(&format!("run k.ptx --engine {engine} --grid 1 --block 1 zero:8"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let heard = Heard::of(child.stdout.take().unwrap());
        heard.wait_for("hi\n");
        signal(&child, "INT");
        Ran::of(&child.wait_with_output().unwrap()).ends(130);
        assert_eq!(heard.text(), "hi\n");
    }
}

#[test]
fn what_was_printed_survives_signals_and_time_limits() {
    let f = Folder::with("survives", &prints(".param .u64 to", COUNTS));
    for engine in ENGINES {
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 1 --timeout 1 zero:8");
        let ran = f.run(&line).ends(1).says("timeout");
        assert_eq!(ran.out, "hi\n");
        let ran = f.run(&format!("{line} --format json")).ends(1);
        assert_eq!(ran.objects()[0]["output"], "hi\n");
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 1 --format json zero:8");
        let child = f.command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        signal(&child, "TERM");
        let ran = Ran::of(&child.wait_with_output().unwrap()).ends(143);
        let [o] = &ran.objects()[..] else { panic!("{ran:?}") };
        assert_eq!((&o["entry"], &o["status"], &o["output"]), (&"prints".into(), &"error".into(), &"hi\n".into()));
    }
}

#[test]
fn a_time_limit_holds_while_code_is_made() {
    let f = Folder::with("large", &format!("{EMPTY}{}", large()));
    // Cranelift needs seconds for it on every host.
    let line = "run k.ptx large --backend cranelift --grid 1 --block 32 --timeout 0.2 zero:128";
    f.run(line).ends(1).says("trap: timeout").says("while compiling large").says("--> k.ptx:");
    let ran = f.run(&format!("{line} --format json")).ends(1);
    let [o] = &ran.objects()[..] else { panic!("{ran:?}") };
    assert_eq!((&o["status"], &o["trap"]["kind"]), (&"trap".into(), &"timeout".into()));
    assert!(o["compile_us"].as_f64() >= Some(200_000.0) && o["run_us"].as_f64() == Some(0.0), "{o}");
    // What is left of it does not disturb the launches that follow.
    let launch = |entry: &str, rest: &str| format!("{{\"entry\": \"{entry}\", \"grid\": [1], \"block\": [32]{rest}}}");
    let limited = launch("large", ", \"timeout\": 0.2, \"args\": [{\"buffer\": \"x\"}]");
    let launches = [limited.clone(), launch("empty", ""), limited, launch("empty", "")].join(", ");
    f.write(
        "job.json",
        format!(
            "{{\"module\": \"k.ptx\", \"on_trap\": \"continue\", \"buffers\": {{\"x\": {{\"zero\": 128}}}},
              \"launches\": [{launches}]}}"
        ),
    );
    let ran = f.run("run --backend cranelift --job job.json --format json").ends(1);
    let told: Vec<String> = ran.objects().iter().map(|o| format!("{} {}", o["entry"], o["status"])).collect();
    assert_eq!(told, ["\"large\" \"trap\"", "\"empty\" \"ok\"", "\"large\" \"trap\"", "\"empty\" \"ok\""]);
}

#[test]
fn signals_end_compiling_within_a_second() {
    let f = Folder::with("compiling", &format!("{EMPTY}{}", large()));
    f.write(
        "job.json",
        "{\"module\": \"k.ptx\", \"buffers\": {\"x\": {\"zero\": 128}},
          \"launches\": [{\"entry\": \"large\", \"grid\": [1], \"block\": [32], \"args\": [{\"buffer\": \"x\"}]}]}",
    );
    let run = "run k.ptx large --backend cranelift --grid 1 --block 32 zero:128";
    for (line, name, status) in [
        ("compile --backend cranelift k.ptx", "INT", 130),
        ("compile --backend cranelift k.ptx", "TERM", 143),
        (run, "INT", 130),
        ("run --backend cranelift --job job.json", "TERM", 143),
    ] {
        let mut child = f.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let heard = Heard::of(child.stdout.take().unwrap());
        if line.starts_with("compile") {
            heard.wait_for("empty: ok");
        }
        std::thread::sleep(Duration::from_millis(1500));
        signal(&child, name);
        let start = Instant::now();
        Ran::of(&child.wait_with_output().unwrap()).ends(status);
        assert!(start.elapsed() < Duration::from_secs(1), "{line}: {:?}", start.elapsed());
    }
}

#[test]
fn progress_of_compiling_is_shown_on_a_terminal_only() {
    let f = Folder::with("progress", &large());
    // Cranelift takes long enough to be watched.
    for line in ["compile --backend cranelift k.ptx", "run k.ptx --backend cranelift --grid 1 --block 32 zero:128"] {
        let (shown, end) = terminal();
        let mut command = f.command(line);
        let child = command.env("TERM", "xterm").stdout(Stdio::null()).stderr(end).spawn().unwrap();
        // The command holds an end of the terminal; this process must hold none.
        drop(command);
        shown.wait_for("large  compiling");
        signal(&child, "INT");
        Ran::of(&child.wait_with_output().unwrap()).ends(130);
        let child = f.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2500));
        signal(&child, "INT");
        let ran = Ran::of(&child.wait_with_output().unwrap()).ends(130);
        assert!(ran.out.is_empty() && !ran.err.contains("large"), "{ran:?}");
    }
}

#[test]
fn a_good_file_is_called_so_on_a_terminal_only() {
    let f = Folder::with("good", EMPTY);
    f.write("wrong.ptx", format!("{}{WRONG}", crate::common::HEAD));
    let ran = f.run("check k.ptx").ends(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    let on_terminal = |line: &str| {
        let (shown, end) = terminal();
        let mut command = f.command(line);
        let child = command.stdout(end).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        let status = child.wait_with_output().unwrap().status.code();
        (shown, status)
    };
    let (shown, status) = on_terminal("check k.ptx wrong.ptx");
    shown.wait_for("k.ptx: ok");
    assert!(status == Some(3) && !shown.text().contains("wrong.ptx: ok"));
    let (shown, status) = on_terminal("check --format json k.ptx");
    assert!(status == Some(0) && shown.text().is_empty());
}

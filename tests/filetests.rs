//! One trial for each file below `filetests`.
//!
//! `cargo test -p handloom-tests --test filetests isa/integer/sad` runs those whose name holds the text. `-- --emit-job DIR`
//! writes the job files of the chosen tests instead of running them. `UPDATE_EXPECT=1` rewrites side files.

use std::path::PathBuf;
use std::process::ExitCode;

use handloom_tests::engines::keeping;
use handloom_tests::filetest::{FileTest, Test, collect, job, parse, root, run_file};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().collect();
    let mut folder = None;
    if let Some(i) = words.iter().position(|w| w == "--emit-job") {
        words.remove(i);
        if i < words.len() {
            folder = Some(PathBuf::from(words.remove(i)));
        }
    }
    let args = Arguments::from_iter(words);
    let tests = match collect(&root()) {
        Ok(tests) => tests,
        Err(e) => {
            let trial = Trial::test("collect", move || Err(e.into()));
            return libtest_mimic::run(&args, vec![trial]).exit_code();
        }
    };
    // Of those that run something, some do so a second time with code that is kept: `HANDLOOM_KEPT=all` takes all of them.
    let step = if std::env::var_os("HANDLOOM_KEPT").is_some_and(|v| v == "all") { 1 } else { 16 };
    let runs = |t: &FileTest| parse(&t.text).is_ok_and(|d| matches!(d.test, Test::Run | Test::Trap));
    let kept = tests.iter().filter(|t| folder.is_none() && runs(t)).step_by(step).cloned().map(kept);
    let mut trials: Vec<Trial> = kept.collect();
    trials.extend(tests.into_iter().map(|t| trial(t, folder.clone())));
    libtest_mimic::run(&args, trials).exit_code()
}

/// The test, and once more by code that was read from disk.
fn kept(test: FileTest) -> Trial {
    Trial::test(format!("kept/{}", test.name), move || {
        let name = format!("handloom-kept-{}-{}", std::process::id(), test.name.replace('/', "-"));
        let folder = std::env::temp_dir().join(name);
        let (first, compiled) = keeping(&folder, || run_file(&test));
        let (second, again) = keeping(&folder, || run_file(&test));
        let _ = std::fs::remove_dir_all(&folder);
        first?;
        second.map_err(|e| format!("with code that was read from disk: {e}"))?;
        if again > 0 {
            return Err(format!("compiled {compiled} times, and {again} times again").into());
        }
        Ok(())
    })
}

fn trial(test: FileTest, folder: Option<PathBuf>) -> Trial {
    Trial::test(test.name.clone(), move || {
        match &folder {
            // Tests without launches have nothing to write.
            Some(folder) => drop(job::write(&test, folder)),
            None => run_file(&test)?,
        }
        Ok(())
    })
}

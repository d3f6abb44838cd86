//! `run`: arguments, buffers, `.npy`, traps, wrong launches, time limits, signals.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{EMPTY, ENGINES, Folder, HEAD, LONG, Ran, SCALE, floats, npy, prints};

#[test]
fn buffers_go_in_and_out() {
    let f = Folder::with("buffers", SCALE);
    f.write("x.bin", floats(&[1.0, 2.0, -3.0, 0.5]));
    for engine in ENGINES {
        let line = format!("run k.ptx scale --engine {engine} --grid 1 --block 32 in:x.bin out:y.bin:16 2.5 4");
        assert!(f.run(&line).ends(0).out.contains("scale: ok"));
        assert_eq!(f.read("y.bin"), floats(&[2.5, 5.0, -7.5, 1.25]));
        // The entry may be left out; one buffer may be both.
        let line =
            format!("run k.ptx --engine {engine} --grid 2 --block 2,1,1 in:x.bin inout:x.bin:z.bin 0f40000000 0x2");
        f.run(&line).ends(0);
        assert_eq!(f.read("z.bin"), floats(&[2.0, 4.0, -3.0, 0.5]));
    }
}

#[test]
fn json_tells_times() {
    let f = Folder::with("json", EMPTY);
    for engine in ENGINES {
        let ran =
            f.run(&format!("run k.ptx --engine {engine} --backend cranelift --grid 1 --block 1 --format json")).ends(0);
        let [o] = &ran.objects()[..] else { panic!("{ran:?}") };
        assert_eq!((&o["entry"], &o["status"]), (&"empty".into(), &"ok".into()));
        assert!(o["compile_us"].as_f64() > Some(0.0) && o["run_us"].is_number());
        assert_eq!(o["recompile_us"].as_f64(), Some(0.0));
        // The interpreter has no tier.
        let tier = (engine == "jit").then_some("quick");
        assert_eq!(o.get("tier").and_then(|t| t.as_str()), tier);
        assert_eq!(o.as_object().unwrap().len(), if tier.is_some() { 6 } else { 5 });
    }
}

#[test]
fn numpy_arrays_keep_type_and_shape() {
    let f = Folder::with("npy", SCALE);
    let x = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let doubled = floats(&[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    f.write("x.npy", npy("<f4", "(2, 3)", &x));
    for engine in ENGINES {
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 8 in:x.npy out:y.npy:f32:2x3 2 6");
        assert!(f.run(&line).ends(0).out.contains("y.npy: f32 2x3: 2 4 6 8 10 12"));
        assert_eq!(f.read("y.npy"), npy("<f4", "(2, 3)", &doubled));
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 8 in:x.npy inout:x.npy:z.npy 2 6");
        f.run(&line).ends(0);
        assert_eq!(f.read("z.npy"), npy("<f4", "(2, 3)", &doubled));
    }
    f.write("bad.npy", &npy("<f4", "(2, 3)", &x)[..100]);
    f.run("run k.ptx --grid 1 --block 8 in:bad.npy zero:24 2 6").ends(5).says("`bad.npy`");
    f.write("bad.npy", b"no array");
    f.run("run k.ptx --grid 1 --block 8 in:bad.npy zero:24 2 6").ends(5).says("not a NumPy array");
}

#[test]
fn a_trap_names_the_place_and_the_allocation() {
    let f = Folder::with("trap", SCALE);
    for engine in ENGINES {
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 64 zero:256 out:y.bin:128 1 64");
        let human = f.run(&line).ends(1).says("trap: out of bounds").says("--> k.ptx:26:").says("`y` is argument 2");
        assert!(human.err.contains("thread (32,0,0)"), "{human:?}");
        assert!(f.has("y.bin"), "buffers are written after a trap too");
        let ran = f.run(&format!("{line} --format json")).ends(1);
        let [o] = &ran.objects()[..] else { panic!("{ran:?}") };
        assert_eq!((&o["entry"], &o["status"]), (&"scale".into(), &"trap".into()));
        let trap = &o["trap"];
        assert_eq!((&trap["kind"], &trap["line"]), (&"out_of_bounds".into(), &26.into()));
        assert_eq!(trap["block"], serde_json::json!([0, 0, 0]));
        assert_eq!(trap["thread"], serde_json::json!([32, 0, 0]));
        assert!(trap["address"].is_u64() && trap["message"].is_string());
        assert_eq!(ran.err, "");
    }
}

#[test]
fn wrong_launches_get_a_sentence() {
    let f = Folder::with("launches", &format!("{SCALE}{EMPTY}"));
    let scale = |rest: &str| f.run(&format!("run k.ptx scale --grid 1 --block 32 {rest}")).ends(2);
    scale("zero:4 zero:4 1").says("`scale` takes 4");
    scale("zero:4 zero:4 1 1 1").says("`scale` takes 4");
    scale("zero:4 zero:4 one 1").says("argument 3: `one` is no .f32");
    scale("zero:4 zero:4 1 4294967296").says("argument 4").says("2^32 - 1");
    scale("zero:4 zero:4 1e99 1").says("argument 3");
    scale("zero:4 zero:4 bytes:00 1").says("argument 3: 1 bytes");
    scale("zero:4 zero:4 bytes:0g 1").says("hexadecimal");
    scale("zero:4 zero:4 zero:4 1").says("argument 3: a buffer");
    scale("zero:four zero:4 1 1").says("no number of bytes");
    scale("zero:4 out:y.npy:f32 1 1").says("out:PATH.npy:TYPE:SHAPE");
    scale("zero:4 file:x 1 1").says("expected a scalar");
    let empty = |shape: &str| f.run(&format!("run k.ptx empty {shape}")).ends(2);
    empty("--grid 0 --block 1").says("a grid of 0,1,1");
    empty("--grid 1 --block 1,0").says("a block of 1,0,1");
    empty("--grid 1 --block 1025").says("at most 1024");
    empty("--grid 1 --block 32,33").says("1056 threads");
    empty("--grid 1 --block 1 --shared 232449").says("at most 232448");
    empty("--grid 1 --block 1,1,1,1");
    f.run("run k.ptx --grid 1 --block 1").ends(2).says("`empty`").says("`scale`");
    f.run("run k.ptx scole --grid 1 --block 1").ends(2).says("no entry `scole`");
    f.run("run k.ptx scale --grid 1 --block 1 in:absent.bin zero:4 1 1").ends(5).says("`absent.bin` cannot be read");
    f.run("run k.ptx scale --grid 1 --block 1 zero:4 out:no/such/y.bin:4 1 1").ends(5).says("cannot be written");
    f.run("run k.ptx scale --grid 1 --block 1 zero:0xffffffffffffff zero:4 1 1").ends(5).says("does not fit");
    f.run("run absent.ptx --grid 1 --block 1").ends(5);
}

#[test]
fn shared_memory_and_structures_have_limits() {
    let f = Folder::with(
        "limits",
        ".visible .entry k(.param .align 4 .b8 s[12]) { .shared .b8 t[49153]; .reg .b32 %r<2>; mov.b32 %r1, t; ret; }\n",
    );
    f.run("run k.ptx --grid 1 --block 1 bytes:000000000000000000000000").ends(2).says("static shared memory");
    f.write("k.ptx", format!("{HEAD}.visible .entry k(.param .align 4 .b8 s[12]) {{ ret; }}\n"));
    f.run("run k.ptx --grid 1 --block 1 5").ends(2).says("structure of 12 bytes");
    f.run("run k.ptx --grid 1 --block 1 bytes:0000").ends(2).says("12 bytes");
    for engine in ENGINES {
        f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 1 bytes:000000000000000000000000")).ends(0);
    }
}

#[test]
fn modules_are_linked() {
    let f = Folder::with(
        "link",
        ".extern .func (.param .u32 r) five();
.visible .entry k(.param .u64 to) {
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    .param .u32 got;
    call (got), five;
    ld.param.u32 %r1, [got];
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], %r1;
    ret;
}\n",
    );
    f.write("five.ptx", format!("{HEAD}.visible .func (.param .u32 r) five() {{ st.param.u32 [r], 5; ret; }}\n"));
    f.run("run k.ptx --grid 1 --block 1 zero:4").ends(3).says("`five`");
    for engine in ENGINES {
        f.run(&format!("run k.ptx --engine {engine} --link five.ptx --grid 1 --block 1 out:y.bin:4")).ends(0);
        assert_eq!(f.read("y.bin"), [5, 0, 0, 0]);
    }
}

#[test]
fn addresses_of_32_bits_lie_low() {
    let f = Folder::new("low");
    f.write(
        "k.ptx",
        ".version 8.0\n.target sm_80\n.address_size 32\n.visible .entry k(.param .u32 to) {
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [to];
    st.global.u32 [%r1], 7;
    ret;
}\n",
    );
    for engine in ENGINES {
        f.run(&format!("run k.ptx --engine {engine} --grid 1 --block 1 out:y.bin:4")).ends(0);
        assert_eq!(f.read("y.bin"), [7, 0, 0, 0]);
    }
}

#[test]
fn a_time_limit_is_a_trap() {
    let f = Folder::with("timeout", LONG);
    for engine in ENGINES {
        let start = Instant::now();
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 1 --timeout 0.2 zero:8 --format json");
        let ran = f.run(&line).ends(1);
        assert_eq!(ran.objects()[0]["trap"]["kind"], "timeout");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn signals_end_a_run_within_a_second() {
    let f = Folder::with("signals", LONG);
    for engine in ENGINES {
        for (signal, status) in [("INT", 130), ("TERM", 143)] {
            let mut command = f.command(&format!("run k.ptx --engine {engine} --grid 1 --block 1 zero:8"));
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(700));
            let kill =
                std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
            assert!(kill.unwrap().success());
            let start = Instant::now();
            Ran::of(&child.wait_with_output().unwrap()).ends(status);
            assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        }
    }
}

#[test]
fn what_a_kernel_prints_is_output() {
    let f = Folder::with("printf", &prints("", ""));
    for engine in ENGINES {
        let line = format!("run k.ptx --engine {engine} --grid 1 --block 1");
        assert!(f.run(&line).ends(0).out.starts_with("hi\nprints: ok"));
        assert_eq!(f.run(&format!("{line} --format json")).ends(0).objects()[0]["output"], "hi\n");
    }
}

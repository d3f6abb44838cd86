//! Streams and events: what is done in which order, what waits for what, and where errors arrive.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use handloom_ir::trap::TrapKind;
use handloom_runtime::{
    Arg, CheckConfig, Checks, Context, Device, Engine, ErrorKind, Function, LaunchConfig, Launcher, Module, StopHandle,
    Stream, StreamError, Word,
};

const KERNELS: &str = ".version 8.0\n.target sm_80\n.address_size 64
// Each thread: x = 3 * x + k.
.visible .entry step(.param .u64 out, .param .u32 k)
{
    .reg .b32 %r<5>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r4, [k];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r2, [%rd1];
    mad.lo.u32 %r2, %r2, 3, %r4;
    st.global.u32 [%rd1], %r2;
    ret;
}
// Each thread waits until the word is not 0, and adds 1 to the next one.
.visible .entry await(.param .u64 flag)
{
    .reg .b32 %r<3>; .reg .b64 %rd<2>; .reg .pred %p;
    ld.param.u64 %rd1, [flag];
again:
    ld.acquire.sys.global.u32 %r1, [%rd1];
    setp.eq.u32 %p, %r1, 0;
    @%p bra again;
    atom.global.add.u32 %r2, [%rd1+4], 1;
    ret;
}
// Each thread adds 1.
.visible .entry count(.param .u64 flag)
{
    .reg .b32 %r<3>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
    atom.global.add.u32 %r2, [%rd1], 1;
    ret;
}
.visible .entry fail() { trap; }";

/// Longest time that something may take which does not hang.
const LONG: Duration = Duration::from_secs(60);

struct Bench {
    device: Device,
    module: Module,
    context: Context,
}

impl Bench {
    fn new() -> Bench {
        let device = Device::new().unwrap();
        let module = Module::from_text(&device, "test.ptx", KERNELS).unwrap_or_else(|e| panic!("{e}"));
        let context = Context::new(&device);
        Bench { device, module, context }
    }

    fn entry(&self, name: &str) -> Function {
        self.module.function(Some(name)).unwrap()
    }

    /// Zero-filled words.
    fn words(&self, n: u64) -> u64 {
        self.device.memory().allocate(4 * n).unwrap()
    }

    fn word(&self, at: u64) -> u32 {
        let mut out = [0; 4];
        self.device.memory().read(at, &mut out).unwrap();
        u32::from_le_bytes(out)
    }

    fn set(&self, at: u64, value: u32) {
        self.device.memory().write(at, &value.to_le_bytes()).unwrap();
    }

    /// Gives a stream a launch that waits for a word.
    fn launch_await(&self, stream: &Stream, flag: u64, blocks: u32) {
        let config = shape(blocks, 32, Engine::Jit);
        stream.launch(&self.entry("await"), &config, &[Arg::from(flag)]).unwrap();
    }
}

fn shape(grid: u32, block: u32, engine: Engine) -> LaunchConfig {
    LaunchConfig { engine, threads: 2, ..LaunchConfig::new([grid, 1, 1], [block, 1, 1]) }
}

/// Does something that must end by itself.
fn in_time<R: Send + 'static>(what: &str, work: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(work()));
    receive.recv_timeout(LONG).unwrap_or_else(|e| panic!("{what}: {e}"))
}

fn synchronize(context: &Context) -> Result<(), StreamError> {
    let context = context.clone();
    in_time("synchronize", move || context.synchronize())
}

#[test]
fn work_of_a_stream_is_done_in_order() {
    for engine in [Engine::Interp, Engine::Jit] {
        let b = Bench::new();
        let (s, x, y) = (b.context.stream(), b.words(4096), b.words(4096));
        let f = b.entry("step");
        let mut host = 5_u32;
        s.write(x, 5_u32.to_le_bytes().repeat(4096)).unwrap();
        for k in 0..60 {
            // One block, and more than one thread has.
            let blocks = if k % 2 == 0 { 1 } else { 64 };
            s.launch(&f, &shape(blocks, 64, engine), &[Arg::from(x), Arg::from(k)]).unwrap();
            host = host.wrapping_mul(3).wrapping_add(k);
            if k == 30 {
                s.memory(move |m| Ok(m.copy(y, x, 4 * 4096)?)).unwrap();
                s.memory(move |m| Ok(m.fill(x, Word::B32(host), 4096)?)).unwrap();
            }
        }
        let (send, receive) = mpsc::channel();
        s.read(x, vec![0; 4], move |bytes| send.send(bytes).unwrap()).unwrap();
        assert_eq!(receive.recv_timeout(LONG).unwrap(), host.to_le_bytes());
        s.synchronize().unwrap();
        assert!(s.is_done().unwrap());
        // The last word saw every second launch only.
        let mut last = 5_u32;
        (0..31).filter(|k| k % 2 == 1).for_each(|k| last = last.wrapping_mul(3).wrapping_add(k));
        assert_eq!(b.word(y + 4 * 4095), last);
    }
}

#[test]
fn a_launch_reports_when_it_has_ended() {
    let b = Bench::new();
    let (s, flag) = (b.context.stream(), b.words(2));
    let pending = s.launch(&b.entry("await"), &shape(3, 32, Engine::Jit), &[Arg::from(flag)]).unwrap();
    assert!(pending.report().is_none() && !s.is_done().unwrap());
    b.set(flag, 1);
    synchronize(&b.context).unwrap();
    assert_eq!(pending.report().unwrap().blocks, 3);
    assert_eq!(b.word(flag + 4), 96);
}

/// Kernels of one and of many blocks wait for what the host, a copy or a kernel of another stream does later; the latter has more blocks than
/// fit on the threads that the first one leaves.
#[test]
fn a_kernel_that_waits_holds_up_its_own_stream_only() {
    for engine in [Engine::Interp, Engine::Jit] {
        for blocks in [1, 2, 64] {
            let b = Bench::new();
            let (waiting, other, flag) = (b.context.stream(), b.context.stream(), b.words(2));
            let config = shape(blocks, 32, engine);
            for way in 0..3 {
                b.set(flag, 0);
                b.set(flag + 4, 0);
                waiting.launch(&b.entry("await"), &config, &[Arg::from(flag)]).unwrap();
                // Long enough for a launch that is alone to be taken for a deadlock.
                thread::sleep(Duration::from_millis(5));
                assert!(!waiting.is_done().unwrap());
                match way {
                    0 => b.set(flag, 1),
                    1 => other.write(flag, [1, 0, 0, 0]).unwrap(),
                    _ => {
                        let config = shape(64, 256, Engine::Jit);
                        other.launch(&b.entry("count"), &config, &[Arg::from(flag)]).unwrap();
                    }
                }
                synchronize(&b.context).unwrap();
                assert_eq!(b.word(flag + 4), 32 * blocks, "{engine:?} {blocks} {way}");
            }
        }
    }
}

#[test]
fn a_launch_that_is_alone_still_finds_its_deadlock() {
    let b = Bench::new();
    let flag = b.words(2);
    let e = handloom_runtime::launch(&b.entry("await"), &shape(2, 32, Engine::Jit), &[Arg::from(flag)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Trap(TrapKind::Deadlock));
}

/// What waits in silence is a deadlock once the host waits too: a kernel, two kernels that wait for each other's words, and a stream.
#[test]
fn work_that_nobody_will_go_on_with_ends() {
    const QUIET: Option<Duration> = Some(Duration::from_millis(100));
    for engine in [Engine::Interp, Engine::Jit] {
        let b = Bench::new();
        let (one, two, flag) = (b.context.stream(), b.context.stream(), b.words(4));
        let config = LaunchConfig { quiet: QUIET, ..shape(2, 64, engine) };
        one.launch(&b.entry("await"), &config, &[Arg::from(flag)]).unwrap();
        two.launch(&b.entry("await"), &config, &[Arg::from(flag + 8)]).unwrap();
        // Nobody waits for them: they may go on as long as they like.
        thread::sleep(Duration::from_millis(300));
        assert!(!one.is_done().unwrap() && !two.is_done().unwrap());
        let e = synchronize(&b.context).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Trap(TrapKind::Deadlock));
    }
    // With checks too, also with seeds that let threads give way in the middle of what they do.
    for seed in [7, 8, 9] {
        let b = Bench::new();
        let flag = b.words(2);
        let check = Some(CheckConfig { checks: Checks::parse("race,sync").unwrap(), ..CheckConfig::default() });
        let config = LaunchConfig { quiet: QUIET, check, seed, ..shape(2, 64, Engine::Jit) };
        b.context.stream().launch(&b.entry("await"), &config, &[Arg::from(flag)]).unwrap();
        let e = synchronize(&b.context).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Trap(TrapKind::Deadlock), "seed {seed}");
    }
    let b = Bench::new();
    b.context.stream().wait_until(|_| Ok(false), QUIET).unwrap();
    let e = synchronize(&b.context).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Trap(TrapKind::Deadlock));
}

/// While a function of the host runs, it may still write what a kernel waits for.
#[test]
fn work_of_the_host_is_no_silence() {
    let b = Bench::new();
    let (one, two, flag) = (b.context.stream(), b.context.stream(), b.words(2));
    let config = LaunchConfig { quiet: Some(Duration::from_millis(100)), ..shape(2, 64, Engine::Jit) };
    one.launch(&b.entry("await"), &config, &[Arg::from(flag)]).unwrap();
    two.host(|| thread::sleep(Duration::from_millis(500))).unwrap();
    two.write(flag, [1, 0, 0, 0]).unwrap();
    synchronize(&b.context).unwrap();
    assert_eq!(b.word(flag + 4), 128);
}

/// Launches that were made ready once run in several streams at a time, each with its own parameters.
#[test]
fn one_launcher_serves_many_launches() {
    let b = Bench::new();
    let launcher = Launcher::new(&b.entry("await"), &shape(2, 32, Engine::Jit)).unwrap();
    let streams: Vec<Stream> = (0..4).map(|_| b.context.non_blocking_stream()).collect();
    let words: Vec<u64> = (0..40).map(|_| b.words(2)).collect();
    for (i, word) in words.iter().enumerate() {
        streams[i % 4].launch_again(&launcher, word.to_le_bytes().to_vec()).unwrap();
    }
    let wrong = streams[0].launch_again(&launcher, vec![0; 7]).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::ArgumentSize);
    assert!(!streams[0].is_done().unwrap());
    words.iter().rev().for_each(|word| b.set(*word, 1));
    synchronize(&b.context).unwrap();
    words.iter().for_each(|word| assert_eq!(b.word(word + 4), 64));
    let other = Device::new().unwrap();
    let elsewhere = Context::new(&other).default_stream().launch_again(&launcher, vec![0; 8]).unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::InvalidHandle);
}

/// More shapes than memory is kept for, and launches that need much local memory: none takes the room of another.
#[test]
fn launchers_give_memory_back() {
    let b = Bench::new();
    let flag = b.words(2);
    let stream = b.context.stream();
    let launchers: Vec<Arc<Launcher>> =
        (1..=150).map(|n| Launcher::new(&b.entry("count"), &shape(n % 7 + 1, n, Engine::Jit)).unwrap()).collect();
    for _ in 0..2 {
        for launcher in &launchers {
            stream.launch_again(launcher, flag.to_le_bytes().to_vec()).unwrap();
        }
    }
    synchronize(&b.context).unwrap();
    assert_eq!(b.word(flag), 2 * (1..=150).map(|n| (n % 7 + 1) * n).sum::<u32>());
}

#[test]
fn events_order_streams() {
    let b = Bench::new();
    let (one, two, flag) = (b.context.stream(), b.context.stream(), b.words(2));
    let event = b.context.event();
    // One that was not recorded stands for no work.
    assert!(event.is_done().unwrap());
    two.wait(&event).unwrap();
    two.synchronize().unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |s: &Stream, what: &'static str| {
        let told = Arc::clone(&told);
        s.host(move || told.lock().unwrap().push(what)).unwrap();
    };
    b.launch_await(&one, flag, 1);
    tell(&one, "first");
    one.record(&event).unwrap();
    two.wait(&event).unwrap();
    tell(&two, "second");
    // Recorded anew, the event stands for something else; who waits already goes on waiting for what it was.
    let never = b.words(2);
    let third = b.context.stream();
    b.launch_await(&third, never, 1);
    third.record(&event).unwrap();
    thread::sleep(Duration::from_millis(20));
    assert!(told.lock().unwrap().is_empty() && !two.is_done().unwrap());
    b.set(flag, 1);
    in_time("two streams", move || (one.synchronize().unwrap(), two.synchronize().unwrap()));
    assert_eq!(*told.lock().unwrap(), ["first", "second"]);
    assert!(!event.is_done().unwrap());
    b.set(never, 1);
    in_time("event", move || event.synchronize()).unwrap();
    assert!(third.is_done().unwrap());
}

#[test]
fn events_order_streams_of_two_contexts() {
    let b = Bench::new();
    let other = Context::new(&b.device);
    let (one, two, flag) = (b.context.stream(), other.stream(), b.words(2));
    let event = b.context.event();
    assert!(matches!(two.record(&event), Err(StreamError::OtherContext)));
    b.launch_await(&one, flag, 1);
    one.record(&event).unwrap();
    two.wait(&event).unwrap();
    assert!(!two.is_done().unwrap());
    b.set(flag, 1);
    synchronize(&other).unwrap();
    assert!(event.is_done().unwrap());
}

#[test]
fn events_keep_time() {
    let b = Bench::new();
    let s = b.context.stream();
    let (start, end, untimed) = (b.context.event(), b.context.event(), b.context.event_without_time());
    assert!(matches!(end.milliseconds_since(&start), Err(StreamError::NoTime)));
    s.record(&start).unwrap();
    s.host(|| thread::sleep(Duration::from_millis(20))).unwrap();
    s.record(&untimed).unwrap();
    let flag = b.words(2);
    b.launch_await(&s, flag, 1);
    s.record(&end).unwrap();
    start.synchronize().unwrap();
    let e = end.milliseconds_since(&start).unwrap_err();
    assert_eq!((e.kind(), end.is_done().unwrap()), (ErrorKind::NotReady, false));
    b.set(flag, 1);
    synchronize(&b.context).unwrap();
    let time = end.milliseconds_since(&start).unwrap();
    assert!(time >= 20.0 && time < LONG.as_secs_f64() * 1e3, "{time}");
    assert_eq!(start.milliseconds_since(&end).unwrap(), -time);
    assert_eq!(untimed.milliseconds_since(&start).unwrap_err().kind(), ErrorKind::InvalidHandle);
}

#[test]
fn what_fails_later_arrives_at_synchronize_and_stays() {
    let b = Bench::new();
    let (s, other, flag) = (b.context.stream(), b.context.stream(), b.words(2));
    let (event, called) = (b.context.event(), Arc::new(AtomicUsize::new(0)));
    b.launch_await(&s, flag, 1);
    s.launch(&b.entry("fail"), &shape(1, 1, Engine::Jit), &[]).unwrap();
    let count = |n| {
        let called = Arc::clone(&called);
        move || {
            called.fetch_add(n, Ordering::SeqCst);
        }
    };
    s.host(count(1)).unwrap();
    let (send, receive) = mpsc::channel();
    s.callback(move |result| send.send(result.map_err(|e| e.kind())).unwrap()).unwrap();
    let after = s.launch(&b.entry("count"), &shape(1, 32, Engine::Jit), &[Arg::from(flag)]).unwrap();
    s.record(&event).unwrap();
    other.wait(&event).unwrap();
    other.host(count(10)).unwrap();
    assert!(b.context.error().is_none());
    b.set(flag, 1);
    let trapped = ErrorKind::Trap(TrapKind::Trap);
    assert_eq!(receive.recv_timeout(LONG).unwrap(), Err(trapped));
    assert_eq!(synchronize(&b.context).unwrap_err().kind(), trapped);
    assert_eq!((called.load(Ordering::SeqCst), b.word(flag), after.report()), (0, 1, None));
    // Every call returns it, and nothing is taken any more.
    let e = [
        s.synchronize(),
        other.synchronize(),
        event.synchronize(),
        event.is_done().map(drop),
        s.is_done().map(drop),
        other.host(count(100)),
        other.write(flag, [7]),
        s.callback(|_| ()),
        s.record(&event),
        s.wait(&event),
        s.launch(&b.entry("step"), &shape(1, 1, Engine::Jit), &[]).map(drop),
        b.context.stream().synchronize(),
        b.context.default_stream().synchronize(),
    ];
    for (i, e) in e.into_iter().enumerate() {
        assert_eq!(e.unwrap_err().kind(), trapped, "{i}");
    }
    let text = b.context.error().unwrap().to_string();
    assert!(text.contains("trap"), "{text}");
    // The device serves another context.
    let again = Context::new(&b.device);
    again.stream().write(flag, [9, 0, 0, 0]).unwrap();
    synchronize(&again).unwrap();
    assert_eq!((b.word(flag), called.load(Ordering::SeqCst)), (9, 0));
}

#[test]
fn what_is_wrong_at_once_changes_nothing() {
    let b = Bench::new();
    let (s, x) = (b.context.stream(), b.words(64));
    let e = s.launch(&b.entry("step"), &shape(0, 32, Engine::Jit), &[Arg::from(x), Arg::from(1_u32)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidValue);
    let e = s.launch(&b.entry("step"), &shape(1, 32, Engine::Jit), &[Arg::from(x)]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ArgumentCount);
    s.launch(&b.entry("step"), &shape(1, 32, Engine::Jit), &[Arg::from(x), Arg::from(1_u32)]).unwrap();
    synchronize(&b.context).unwrap();
    assert_eq!(b.word(x), 1);
}

#[test]
fn wrong_addresses_and_panics_are_found_when_work_is_done() {
    let b = Bench::new();
    let x = b.words(1);
    let fresh = || Context::new(&b.device);
    let c = fresh();
    c.stream().write(x + 1, [0; 4]).unwrap();
    assert_eq!(synchronize(&c).unwrap_err().kind(), ErrorKind::InvalidValue);
    let c = fresh();
    let s = c.stream();
    // What frees memory keeps its place too.
    s.write(x, [1; 4]).unwrap();
    s.memory(move |m| Ok(m.free(x)?)).unwrap();
    s.synchronize().unwrap();
    s.read(x, [0; 4], |_| panic!("of nothing")).unwrap();
    assert!(matches!(synchronize(&c), Err(StreamError::Memory(_))));
    let c = fresh();
    c.stream().host(|| panic!("my own fault")).unwrap();
    let e = synchronize(&c).unwrap_err();
    assert_eq!(
        (e.kind(), e.to_string()),
        (ErrorKind::HostFunction, "a function of the host panicked: my own fault".to_owned())
    );
}

#[test]
fn functions_of_the_host_do_not_wait_for_what_comes_after_them() {
    let c = Context::new(&Bench::new().device);
    let s = c.stream();
    let event = c.event();
    let (to, told) = mpsc::channel();
    let (own, begun) = (c.clone(), Arc::new(AtomicBool::new(false)));
    let is_given = Arc::clone(&begun);
    s.host(move || {
        while !is_given.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        to.send((own.synchronize(), own.stream().synchronize(), own.is_done_by(Instant::now()))).unwrap();
    })
    .unwrap();
    s.record(&event).unwrap();
    begun.store(true, Ordering::SeqCst);
    let (all, nothing, is_done) = told.recv().unwrap();
    assert_eq!(all.unwrap_err().kind(), ErrorKind::NotPermitted);
    assert!(nothing.is_ok() && !is_done);
    event.synchronize().unwrap();
    synchronize(&c).unwrap();
    assert!(c.is_done_by(Instant::now()));
}

#[test]
fn launches_are_stopped_and_run_out_of_time_one_by_one() {
    let b = Bench::new();
    let flag = b.words(2);
    let stop = StopHandle::new();
    let config = LaunchConfig { stop: stop.clone(), ..shape(2, 32, Engine::Jit) };
    let (stopped, late) = (Context::new(&b.device), Context::new(&b.device));
    let (one, two) = (stopped.stream(), late.stream());
    one.launch(&b.entry("await"), &config, &[Arg::from(flag)]).unwrap();
    // Both have the same handle; the time limit is that of one of them.
    let limited = LaunchConfig { timeout: Some(Duration::from_millis(50)), ..config.clone() };
    two.launch(&b.entry("await"), &limited, &[Arg::from(flag)]).unwrap();
    assert_eq!(synchronize(&late).unwrap_err().kind(), ErrorKind::Trap(TrapKind::Timeout));
    assert!(!one.is_done().unwrap());
    let both = Context::new(&b.device);
    let patient = LaunchConfig { timeout: Some(LONG), ..config };
    both.stream().launch(&b.entry("await"), &patient, &[Arg::from(flag)]).unwrap();
    stop.stop();
    assert_eq!(synchronize(&stopped).unwrap_err().kind(), ErrorKind::Stopped);
    assert_eq!(synchronize(&both).unwrap_err().kind(), ErrorKind::Stopped);
}

#[test]
fn a_stream_that_is_dropped_does_what_it_was_given() {
    let b = Bench::new();
    let (s, flag, x) = (b.context.stream(), b.words(2), b.words(32));
    b.launch_await(&s, flag, 1);
    for k in 1..=10_u32 {
        s.launch(&b.entry("step"), &shape(1, 32, Engine::Jit), &[Arg::from(x), Arg::from(k)]).unwrap();
    }
    let (send, receive) = mpsc::channel();
    s.read(x, vec![0; 4], move |bytes| send.send(bytes).unwrap()).unwrap();
    let event = b.context.event();
    s.record(&event).unwrap();
    in_time("drop", move || drop(s));
    let (device, memory_of) = (b.device.clone(), b.device.clone());
    // Nothing else keeps the module, the context or the stream.
    drop((b, device));
    memory_of.memory().write(flag, &[1]).unwrap();
    let want = (1..=10_u32).fold(0, |x, k| 3 * x + k);
    assert_eq!(receive.recv_timeout(LONG).unwrap(), want.to_le_bytes());
    in_time("event", move || event.synchronize()).unwrap();
}

#[test]
fn the_default_stream_comes_between_blocking_streams() {
    let b = Bench::new();
    let (one, two, free) = (b.context.stream(), b.context.stream(), b.context.non_blocking_stream());
    let default = b.context.default_stream();
    let flag = b.words(2);
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = |s: &Stream, what: &'static str| {
        let told = Arc::clone(&told);
        s.host(move || told.lock().unwrap().push(what)).unwrap();
    };
    b.launch_await(&one, flag, 1);
    tell(&one, "before");
    tell(default, "default");
    tell(&two, "after");
    tell(&free, "free");
    in_time("free", {
        let free_done = b.context.event();
        free.record(&free_done).unwrap();
        move || free_done.synchronize()
    })
    .unwrap();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(*told.lock().unwrap(), ["free"]);
    assert!(!default.is_done().unwrap() && !two.is_done().unwrap() && free.is_done().unwrap());
    b.set(flag, 1);
    in_time("two", move || two.synchronize()).unwrap();
    assert_eq!(*told.lock().unwrap(), ["free", "before", "default", "after"]);
    // What the default stream waits for counts as its own.
    b.set(flag, 0);
    b.launch_await(&one, flag, 1);
    assert!(!default.is_done().unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let waits = {
        let (context, over) = (b.context.clone(), Arc::clone(&over));
        thread::spawn(move || (context.default_stream().synchronize(), over.load(Ordering::SeqCst)))
    };
    thread::sleep(Duration::from_millis(20));
    over.store(true, Ordering::SeqCst);
    b.set(flag, 1);
    let (result, was_over) = in_time("default", move || waits.join()).unwrap();
    result.unwrap();
    assert!(was_over);
}

#[test]
fn streams_of_many_threads_share_a_device() {
    let b = Bench::new();
    let (n, per) = (8, 25);
    let sum = b.words(1);
    let threads: Vec<_> = (0..n)
        .map(|_| {
            let (context, count, step) = (b.context.clone(), b.entry("count"), b.entry("step"));
            let own = b.words(64);
            thread::spawn(move || {
                let s = context.stream();
                for k in 0..per {
                    s.launch(&count, &shape(4, 64, Engine::Jit), &[Arg::from(sum)]).unwrap();
                    s.launch(&step, &shape(1, 64, Engine::Jit), &[Arg::from(own), Arg::from(k)]).unwrap();
                }
                s.synchronize().unwrap();
                own
            })
        })
        .collect();
    let want = (0..per).fold(0_u32, |x, k| x.wrapping_mul(3).wrapping_add(k));
    for t in threads {
        let own = in_time("thread", move || t.join()).unwrap();
        assert_eq!(b.word(own), want);
    }
    assert_eq!(b.word(sum), n * per * 4 * 64);
}

#[test]
fn who_waits_helps_in_the_order_of_the_stream() {
    let b = Bench::new();
    let (s, other) = (b.context.non_blocking_stream(), b.context.non_blocking_stream());
    let me = thread::current().id();
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut helped = 0;
    for round in 0..300_u32 {
        told.lock().unwrap().clear();
        let tell = |s: &Stream, what: u32| {
            let told = Arc::clone(&told);
            s.memory(move |_| {
                told.lock().unwrap().push((what, thread::current().id()));
                Ok(())
            })
            .unwrap();
        };
        let event = b.context.event_without_time();
        tell(&s, 0);
        s.record(&event).unwrap();
        tell(&s, 1);
        other.wait(&event).unwrap();
        tell(&other, 2);
        let called = Arc::clone(&told);
        // Functions of the program are called on the thread of the stream.
        s.host(move || called.lock().unwrap().push((3, thread::current().id()))).unwrap();
        tell(&s, 4);
        if round % 3 == 0 {
            // Now the threads of the streams are awake, doze, or sleep.
            thread::sleep(Duration::from_micros(u64::from(round % 7) * 100));
        }
        other.synchronize().unwrap();
        s.synchronize().unwrap();
        let told = told.lock().unwrap();
        let of_s: Vec<u32> = told.iter().map(|(what, _)| *what).filter(|what| *what != 2).collect();
        assert_eq!(of_s, [0, 1, 3, 4], "round {round}");
        let place = |what| told.iter().position(|(w, _)| *w == what).unwrap();
        assert!(place(0) < place(2), "round {round}");
        assert_ne!(told[place(3)].1, me);
        helped += usize::from(told.iter().any(|(_, thread)| *thread == me));
    }
    assert!(helped > 0, "nobody helped");
}

#[test]
fn many_streams_in_a_row_are_helped_with_from_the_last() {
    let b = Bench::new();
    let streams: Vec<Stream> = (0..300).map(|_| b.context.non_blocking_stream()).collect();
    let x = b.words(32);
    for round in 1..=3 {
        let mut last = None;
        for (k, s) in (0_u32..).zip(&streams) {
            if let Some(event) = &last {
                s.wait(event).unwrap();
            }
            s.launch(&b.entry("step"), &shape(1, 32, Engine::Jit), &[Arg::from(x), Arg::from(k + round)]).unwrap();
            let event = b.context.event();
            s.record(&event).unwrap();
            last = Some(event);
        }
        let last = last.unwrap();
        in_time("the last", move || last.synchronize()).unwrap();
    }
    let want = (1..=3).flat_map(|round| (0..300).map(move |k| k + round));
    assert_eq!(b.word(x), want.fold(0_u32, |x, k| x.wrapping_mul(3).wrapping_add(k)));
}

/// How often the calling thread went to sleep until now.
fn n_sleeps() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn who_waits_sleeps_until_the_work_it_waits_for_is_done() {
    let (b, n) = (Bench::new(), 240);
    let (s, done) = (b.context.non_blocking_stream(), Arc::new(AtomicUsize::new(0)));
    let mut waiting = Vec::new();
    for k in 1..=n {
        let counted = Arc::clone(&done);
        // Nobody helps with functions of the program.
        s.host(move || {
            thread::sleep(Duration::from_micros(300));
            counted.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
        if k % (n / 4) == 0 {
            let (event, done) = (b.context.event(), Arc::clone(&done));
            s.record(&event).unwrap();
            waiting.push(thread::spawn(move || {
                let before = n_sleeps();
                event.synchronize().unwrap();
                assert!(done.load(Ordering::SeqCst) >= k);
                n_sleeps() - before
            }));
        }
    }
    for thread in waiting {
        let n_sleeps = in_time("a waiting thread", move || thread.join()).unwrap();
        // It is woken for what others wait for as well.
        assert!(n_sleeps <= 20, "it slept {n_sleeps} times");
    }
}

#[test]
fn short_work_is_done_though_nobody_waits() {
    let b = Bench::new();
    let (s, x) = (b.context.stream(), b.words(32));
    let launcher = Launcher::new(&b.entry("count"), &shape(1, 32, Engine::Jit)).unwrap();
    let mut want = 0;
    for _ in 0..20 {
        // Somebody helps, so that the thread dozes and launches that were short do not wake it.
        for _ in 0..3 {
            s.launch_again(&launcher, x.to_le_bytes().to_vec()).unwrap();
            s.synchronize().unwrap();
        }
        thread::sleep(Duration::from_millis(1));
        s.launch_again(&launcher, x.to_le_bytes().to_vec()).unwrap();
        want += 4 * 32;
        let start = Instant::now();
        while b.word(x) != want {
            assert!(start.elapsed() < LONG, "{} of {want}", b.word(x));
        }
    }
}

#[test]
fn who_has_little_stack_does_not_help() {
    let b = Bench::new();
    let (s, launcher) = (b.context.stream(), Launcher::new(&b.entry("count"), &shape(1, 32, Engine::Jit)).unwrap());
    let x = b.words(1);
    let wait = move || {
        let (me, helped) = (thread::current().id(), Arc::new(AtomicBool::new(false)));
        for _ in 0..100 {
            let helped = Arc::clone(&helped);
            s.launch_again(&launcher, x.to_le_bytes().to_vec()).unwrap();
            s.memory(move |_| {
                helped.fetch_or(thread::current().id() == me, Ordering::SeqCst);
                Ok(())
            })
            .unwrap();
            s.synchronize().unwrap();
        }
        helped.load(Ordering::SeqCst)
    };
    let thread = thread::Builder::new().stack_size(256 << 10).spawn(wait).unwrap();
    assert!(!in_time("a small thread", move || thread.join()).unwrap());
    assert_eq!(b.word(x), 100 * 32);
}

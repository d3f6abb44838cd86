"""What the families of labelled kernels are made of (families.py)."""

# How far apart two threads are, and how far a scope reaches.
PLACES = {"cta": 0, "cluster": 1, "gpu": 2}
SCOPES = {"cta": 0, "cluster": 1, "gpu": 2, "sys": 3}


def reaches(scope, place):
    """Whether a scope around one of two threads has the other one."""
    return SCOPES[scope] >= PLACES[place]


class Family:
    """A file of kernels. Each has a slot of 64 bytes in three buffers, `data`, `flag` and `out`."""

    def __init__(self, path, about, target="sm_90", version="8.6", seeds=None):
        self.path, self.about, self.target, self.version, self.seeds = path, about, target, version, seeds
        self.kernels, self.launches = [], []

    def add(self, name, body, launch, why=None, shared=(), entry=None):
        """A kernel and its launch: `GRID, BLOCK` and what follows the arguments. `entry`: launched again, no new kernel."""
        slot = 64 * len(self.launches)
        shape, _, rest = launch.partition(";")
        args = ", ".join(f"{b}+{slot}" for b in ("data", "flag", "out"))
        if entry is None:
            self.kernels.append((name, body, why, shared))
        self.launches.append(f"//@ launch: {entry or name}<<<{shape}>>>({args}){' ' + rest if rest else ''}")

    def again(self, name, launch):
        """The kernel before it, launched with the same slot."""
        args = self.launches[-1].split(">>>")[1].split(")")[0]
        self.launches.append(f"//@ launch: {name}<<<{launch}>>>{args})")

    def text(self):
        lines = [f"// {self.about[0]} (families.py)"] + [f"// {line}" for line in self.about[1:]]
        lines += ["//@ test: find"] + ([f"//@ seeds: {self.seeds}"] if self.seeds else [])
        lines += [f".version {self.version}", f".target {self.target}", ".address_size 64"]
        for name, body, why, shared in self.kernels:
            lines += [""] + ([f"// {why}"] if why else [])
            lines += [f".visible .entry {name}(.param .u64 data, .param .u64 flag, .param .u64 out)", "{"]
            lines += [f"    .shared {variable};" for variable in shared]
            lines += ["    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>, %data, %flag, %out;"]
            lines += [f"    ld.param.u64 %{p}, [{p}];" for p in ("data", "flag", "out")]
            for line in body:
                lines.append(line if line.endswith(":") else f"    {line}")
            lines += ["    ret;", "}"]
        n = 16 * len(self.launches)
        lines += [""] + [f"//@ buf {b}: u32 = zero {n}" for b in ("data", "flag", "out")] + self.launches
        return "\n".join(lines) + "\n"


def note(line, *labels):
    """A line with its labels."""
    return line + "".join(f" //~ {label}" for label in labels if label)


# Who a thread is: %r0 is 0 for the one that waits, 1 for the other one; a launch that puts them so far apart.
WHO = {
    "cta": (["mov.u32 %r0, %tid.x;", "and.b32 %r1, %r0, 31;", "setp.ne.u32 %p7, %r1, 0;", "@%p7 ret;", "shr.u32 %r0, %r0, 5;"], "1, 64"),
    "cluster": (["mov.u32 %r0, %ctaid.x;"], "2, 1;cluster=(2,1,1)"),
    "gpu": (["mov.u32 %r0, %ctaid.x;"], "2, 1"),
}


BOX = ".align 128 .b32 box[64]"
BAR = ".align 8 .b64 bar"
ONE = "1, 1"


def wait_for(parity, name="wait", bar="bar"):
    """Waits at a barrier for the end of a phase."""
    return [f"{name}:", f"mbarrier.try_wait.parity.shared.b64 %p6, [{bar}], {parity};", f"@!%p6 bra {name};"]

"""Why something was not done. Each exception shows the whole report as its text."""


class HandloomError(Exception):
    """All of them."""

    kind = None

    def _repr_html_(self):
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


class ModuleError(HandloomError, ValueError):
    """PTX is wrong: `diagnostics` says where."""

    diagnostics = ()


class Unsupported(ModuleError):
    """PTX is right and holds something that does not run: `diagnostics` says what and where."""


class LaunchError(HandloomError, ValueError):
    """A launch that cannot be: a shape, a name, a module that was unloaded. `kind` says which."""


class Trap(HandloomError, RuntimeError):
    """A kernel stopped."""

    message = report = ""
    file = line = column = source_file = source_line = address = None
    block = thread = ()
    other_threads = 0


class Stopped(HandloomError):
    """A launch was stopped, and nothing else raised."""


class OutOfMemory(HandloomError, MemoryError):
    """There is no room."""


class Bug(HandloomError):
    """A fault of Handloom's."""


class CheckError(HandloomError, AssertionError):
    """Checks found something: `reports` are those of the launches where they did."""

    def __init__(self, reports):
        super().__init__("\n\n".join(report.text for report in reports))
        self.reports = list(reports)

    @property
    def findings(self):
        """All findings."""
        return [finding for report in self.reports for finding in report.findings]

    def __reduce__(self):
        # Reports stay in the process where the launches were; their text is sent to another.
        return _found, (str(self),)


def _found(text):
    error = CheckError(())
    error.args = (text,)
    return error

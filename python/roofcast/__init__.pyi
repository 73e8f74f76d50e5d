from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Optional, TypedDict, Union

from typing_extensions import Unpack  # of the type checker; not needed to run

from roofcast import results as results
from roofcast._base import Columns
from roofcast._errors import ConfigError as ConfigError
from roofcast._errors import Infeasible as Infeasible
from roofcast._errors import RoofcastWarning as RoofcastWarning

__version__: str

Path = Union[str, PathLike[str]]
Document = Union[Mapping[str, Any], Path, None]
Spec = Union[Mapping[str, Any], Path]
Progress = Callable[[int, Optional[int]], object]

class Flags(TypedDict, total=False):
    model: Spec
    gpu: Spec
    engine: Spec
    tp: int
    pp: int
    dp: int
    dcp: int
    ep: int
    attention_dp: int
    weights: str
    activations: str
    kv_cache_dtype: str
    price: str
    seed: int
    force_unsupported: bool
    set: Mapping[str, Any]
    fidelity: Literal["calibrated", "ideal"]

def estimate(
    scenario: Document = None,
    *,
    batch: int = 1,
    prompt_tokens: int = 1024,
    output_tokens: int = 128,
    context: Optional[int] = None,
    kv_cache: bool = True,
    **flags: Unpack[Flags],
) -> results.Estimate: ...
def estimate_grid(
    scenario: Document,
    grid: Mapping[str, Sequence[Any]],
    *,
    zip: Optional[Mapping[str, Sequence[Any]]] = None,
    where: Optional[Sequence[str]] = None,
    batch: Optional[int] = None,
    prompt_tokens: Optional[int] = None,
    output_tokens: Optional[int] = None,
    context: Optional[int] = None,
    progress: Optional[Progress] = None,
    **flags: Unpack[Flags],
) -> Columns: ...
def simulate(
    scenario: Document = None,
    *,
    trace: Optional[Path] = None,
    trace_format: Optional[str] = None,
    per_request: bool = False,
    intervals: bool = False,
    progress: Optional[Progress] = None,
    **flags: Unpack[Flags],
) -> results.Simulation: ...
def plan(
    plan: Document,
    *,
    confidence: Optional[float] = None,
    exhaustive: bool = False,
    progress: Optional[Progress] = None,
    **flags: Unpack[Flags],
) -> results.Plan | results.ServicesPlan: ...
def sweep(
    sweep: Document, *, store: Path = ":memory:", progress: Optional[Progress] = None, **flags: Unpack[Flags]
) -> results.Sweep: ...
def compare(
    scenario: Document,
    bench: Optional[Path] = None,
    *,
    run: Optional[int] = None,
    prometheus: Union[Path, Sequence[Path], None] = None,
    window: Union[str, float, None] = None,
    progress: Optional[Progress] = None,
    **flags: Unpack[Flags],
) -> results.Comparison: ...
def validate(
    data: Path,
    *,
    gpu: Optional[str] = None,
    model: Optional[str] = None,
    intervals: bool = False,
    progress: Optional[Progress] = None,
) -> results.Validation: ...
def ladder(
    scenario: Document,
    *,
    concurrency: int = 64,
    requests: int = 0,
    progress: Optional[Progress] = None,
    **flags: Unpack[Flags],
) -> results.Ladder: ...
def read_result(path: Path) -> results.Result: ...
def models() -> list[str]: ...
def gpus() -> list[str]: ...
def engines() -> list[str]: ...
def workloads() -> list[str]: ...
def recipes() -> list[str]: ...
def clients() -> list[str]: ...
def scenarios() -> list[str]: ...
def plans() -> list[str]: ...
def sweeps() -> list[str]: ...
def model(name: Path) -> dict[str, Any]: ...
def gpu(name: Path) -> dict[str, Any]: ...
def engine(name: Path) -> dict[str, Any]: ...
def workload(name: Path) -> dict[str, Any]: ...
def recipe(name: Path) -> dict[str, Any]: ...
def client(name: Path) -> dict[str, Any]: ...

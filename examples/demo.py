"""A tour on real data: `make demo`.

The tour puts netCDF files of several models and GRIB messages into two stores, finds and reads fields,
replaces a field and goes back to the older one, kills a writer and damages a copy. It opens the stores in
xarray, writes regions from there, exports the files again and plots. It tags the warm spots of an ocean,
finds some of them and reads only those; converts a netCDF classic file; lets four processes write one file of
many objects; computes a flow on a real mesh with four processes and continues it with three; and draws where
its plot came from. It compares all that comes back with the source. It needs the package with its extras and
`iris-sample-data`, but no network, and puts its results into demo-out/.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import detector
import eccodes
import fieldstone as fst
import flow
import iris_sample_data
import matplotlib.pyplot as plt
import netCDF4
import numpy as np
import uxarray
import xarray
from fieldstone import container

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "demo-out"
CLIMATE, FORECAST, FLOW = OUT / "climate", OUT / "forecast", OUT / "flow"
SAMPLES = Path(iris_sample_data.path)
PROGRAM = Path(sys.executable).parent / "fieldstone"

AIR = "A1B_north_america"  # 240 years of air temperature over North America, computed by a climate model
NETCDF = [f"{AIR}.nc", "ostia_monthly.nc", "orca2_votemper.nc", "hybrid_height.nc", "rotated_pole.nc"]
GRIB_YEARS = 20
FLOW_STEPS = 6  # of each of two jobs
MESH, EVENTS = "mesh_C4_synthetic_float", 2000  # a cubed sphere in netCDF classic; graphs of a detector
SEA, WARM = "ostia_monthly", 302.9  # monthly sea surface temperature along the equator; kelvins


# ---- output


@contextmanager
def chapter(number: int, title: str) -> Iterator[None]:
    head = f"{number}. {title}"
    print(f"\n{head}\n{'-' * len(head)}")
    begun = time.perf_counter()
    yield
    print(f"   ({time.perf_counter() - begun:.2f} s)")


def say(*lines: str) -> None:
    for line in lines:
        print(f"   {line}")


def shell(verb: str, path: Path, *arguments: str, expect: int = 0, show: int = 8) -> None:
    """Runs the program as a user would, from the root of the checkout, and prints its output."""
    words = [*verb.split(), str(path.relative_to(ROOT)), *arguments]
    say(f"$ fieldstone {shlex.join(words)}")
    done = subprocess.run(
        [PROGRAM, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = done.stdout.splitlines()
    for line in lines[:show]:
        wrapped = textwrap.wrap(line, 110, subsequent_indent="    ", break_on_hyphens=False)
        say(*(f"  {part}" for part in (wrapped if len(line) > 110 else [line])))
    if len(lines) > show:
        say(f"  … {len(lines) - show} more lines")
    if done.returncode != expect:
        raise SystemExit(f"exit {done.returncode}, not {expect}:\n{done.stdout}")


def check(holds: object, what: str) -> None:
    """Prints the comparison that was made; ends the tour if it failed."""
    if not holds:
        raise SystemExit(f"   NOT SO: {what}")
    say(f"ok: {what}")


def air_temperature(step: int) -> dict[str, object]:
    return {"run": AIR, "variable": "air_temperature", "step": step}


def source_values() -> np.ndarray:
    """Air temperature (year, latitude, longitude), read from the file and not from the store."""
    with netCDF4.Dataset(SAMPLES / f"{AIR}.nc") as dataset:
        return np.asarray(dataset["air_temperature"][:])


# ---- the chapters


def take_netcdf() -> None:
    paths = [SAMPLES / name for name in NETCDF]
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    say(f"{len(paths)} files, {megabytes:.1f} MB, of climate, ocean and weather models:")
    with fst.open(CLIMATE, schema="simulation") as store:
        for path in paths:
            # The execution records what the block reads and writes; the last chapter asks where a plot came
            # from.
            with fst.execution(f"take {path.name}", store, reads=[path]):
                report = fst.ingest(store, [path], progress=False)
            for taken in report.taken:
                say(f"  {Path(taken.path).name:24}{taken.fields:5} fields {taken.bytes / 1e6:7.2f} MB")
            for skipped in report.skipped:
                say(f"  skipped: {skipped}")
        again = fst.ingest(store, paths, progress=False)
    check(sum(taken.fields for taken in again.taken) == 0, "taking the same files again adds nothing")


def find() -> None:
    shell("list", CLIMATE, f"run={AIR},variable=air_temperature,step=0/to/239/by/60")
    shell("axes", CLIMATE, "run=hybrid_height")
    shell("stats", CLIMATE, show=10)


def read(source: np.ndarray) -> None:
    store = fst.open(CLIMATE, mode="r")
    field = store.get(air_temperature(100))
    check(
        field.dtype == source.dtype and np.array_equal(field, source[100]),
        f"one field ({field.dtype}, {field.shape}) equals that of the file, bit for bit",
    )
    box = store.get(air_temperature(100), start=(10, 20), count=(4, 5))
    check(np.array_equal(box, source[100, 10:14, 20:25]), "so does a box of it; only its blocks were read")
    years = store.retrieve(f"run={AIR},variable=air_temperature,step=239/120/0")
    same = all(np.array_equal(f.array(), source[int(f.key["step"])]) for f in years)
    check(same and years[0].key["step"] == "239", "several fields come in the request's order")
    try:
        store.retrieve(f"run={AIR},variable=air_temperature,step=239/240")
        raise SystemExit("   NOT SO: a missing field is named")
    except fst.NotFound as error:
        say(f"the error names the missing field: {error.message}")


def overwrite(source: np.ndarray) -> None:
    with fst.open(CLIMATE) as store:
        before = store.version
        store.archive(air_temperature(0), source[0] - np.float32(273.15))
        check(store.get(air_temperature(0)).min() > 100, "until the flush, all readers get kelvins")
        store.flush()
        check(store.get(air_temperature(0)).min() < 100, "after it, degrees Celsius")
    older = fst.open(CLIMATE, mode="r", at=before)
    check(np.array_equal(older.get(air_temperature(0)), source[0]), "the version before it still has kelvins")
    shell("list", CLIMATE, f"run={AIR},variable=air_temperature,step=0", "--masked")
    with fst.open(CLIMATE) as store:
        store.archive(air_temperature(0), source[0])
    say("(changed back to kelvins, as a third version)")


WRITER = """
import sys, numpy as np, fieldstone as fst
store = fst.open(sys.argv[1])
for step in range(100_000):
    for level in range(8):
        key = {"run": "killed", "variable": "u", "step": step, "level": level}
        store.archive(key, np.full((64, 64), step * 8 + level, "f4"))
    store.flush()
    print(step, flush=True)
"""


def kill_a_writer() -> None:
    say("A child process archives 8 levels per step and flushes after each step; we kill -9 it on the way.")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, CLIMATE], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    flushed = -1
    while flushed < 60:
        flushed = int(writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    flushed = max([flushed, *map(int, writer.stdout.read().split())])
    writer.wait()
    store = fst.open(CLIMATE, mode="r")
    levels = [0] * (flushed + 2)
    intact = True
    for field in store.retrieve("run=killed,variable=u", strict=False):
        step, level = int(field.key["step"]), int(field.key["level"])
        levels[step] += 1
        intact = intact and bool((field.array() == step * 8 + level).all())
    check(levels[: flushed + 1] == [8] * (flushed + 1), f"all {flushed + 1} steps that it flushed are there")
    check(levels[flushed + 1] in (0, 8), "the step in progress is there as a whole, or not at all")
    check(intact, "every value is the one that the writer archived")
    shell("verify", CLIMATE)


def damage_a_copy() -> None:
    copy = OUT / "damaged"
    shutil.copytree(CLIMATE, copy)
    (place,) = fst.open(copy, mode="r").where(air_temperature(7))
    name, offset = place.rsplit(":", 1)
    with (copy / name).open("r+b") as file:
        file.seek(int(offset) + 100)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    say("In a copy, one bit of one field is flipped:")
    shell("verify", copy, expect=5)
    store = fst.open(copy, mode="r")
    try:
        store.get(air_temperature(7))
        raise SystemExit("   NOT SO: a damaged field is refused")
    except fst.Corrupt:
        next_one = store.get(air_temperature(8))
        check(next_one.shape == (37, 49), "the damaged field is refused, and the next one is read")


def make_grib(source: np.ndarray) -> Path:
    """The last years of the air temperature as GRIB2 messages, like an experiment of a weather centre."""
    with netCDF4.Dataset(SAMPLES / f"{AIR}.nc") as dataset:
        times = dataset["time"]
        dates = netCDF4.num2date(times[-GRIB_YEARS:], times.units, times.calendar)
    path = OUT / "temperature.grib"
    with path.open("wb") as file:
        for date, values in zip(dates, source[-GRIB_YEARS:], strict=True):
            handle = eccodes.codes_grib_new_from_samples("regular_ll_sfc_grib2")
            keys = {"setLocalDefinition": 1, "class": "rd", "expver": "demo", "stream": "oper", "type": "fc"}
            keys |= {"dataDate": date.year * 10000 + 101, "dataTime": 0, "step": 0, "paramId": 167}
            keys |= {"Ni": 49, "Nj": 37, "jScansPositively": 1, "bitsPerValue": 16}
            keys |= {"iDirectionIncrementInDegrees": 1.875, "jDirectionIncrementInDegrees": 1.25}
            corner = {"latitudeOfFirst": 15.0, "latitudeOfLast": 60.0}
            corner |= {"longitudeOfFirst": 225.0, "longitudeOfLast": 315.0}
            keys |= {f"{name}GridPointInDegrees": degrees for name, degrees in corner.items()}
            for name, value in keys.items():
                eccodes.codes_set(handle, name, value)
            eccodes.codes_set_values(handle, values.astype("f8").ravel())
            eccodes.codes_write(handle, file)
            eccodes.codes_release(handle)
    return path


def take_grib(source: np.ndarray) -> None:
    made = make_grib(source)
    canada = next(SAMPLES.rglob("polar_stereo.grib2"))
    say(f"{GRIB_YEARS} messages made from the air temperature, and a real message of the Canadian centre:")
    with fst.open(FORECAST, schema="mars") as store:
        report = fst.ingest(store, [made, canada], progress=False)
        for taken in report.taken:
            say(f"  {Path(taken.path).name:24}{taken.fields:5} fields {taken.bytes / 1e6:7.2f} MB")
        shell("list", FORECAST, show=3)
        shell("list", FORECAST, "centre=cwao")
        request = "class=rd,expver=demo,param=2t"
        found = store.retrieve(request).read()
        check(found == made.read_bytes(), f"retrieved by {request}, the messages equal the file")
        decade = store.retrieve("class=rd,expver=demo,date=20900101/20950101")
        check(len(decade) == 2, "one request names fields of two dates, which belong to two datasets")


def open_in_xarray(source: np.ndarray) -> None:
    dataset = xarray.open_dataset(CLIMATE, engine="fieldstone", request={"run": AIR})
    with xarray.open_dataset(SAMPLES / f"{AIR}.nc") as file:
        check(dataset.load().identical(file.load()), "the ingested netCDF file opens as the original")
    means = dataset["air_temperature"].mean(["latitude", "longitude"])
    first, last = float(means[:10].mean()), float(means[-10:].mean())
    say(f"mean of the first ten years {first:.2f} K, of the last ten {last:.2f} K: {last - first:+.2f} K")
    grib = xarray.open_dataset(FORECAST, engine="fieldstone", request="class=rd,expver=demo")
    (name,) = grib.data_vars
    values = grib[name].values.reshape(GRIB_YEARS, 37, 49)
    worst = float(np.abs(values - source[-GRIB_YEARS:]).max())
    sizes = ", ".join(f"{dim} {n}" for dim, n in grib[name].sizes.items())
    check(worst < 0.01, f"the GRIB fields open as {name} ({sizes}), within their packing: {worst:.4f} K")


def write_from_xarray(source: np.ndarray) -> None:
    celsius = xarray.open_dataset(CLIMATE, engine="fieldstone", request={"run": AIR})[["air_temperature"]]
    celsius["air_temperature"] -= np.float32(273.15)
    celsius["air_temperature"].attrs["units"] = "celsius"
    run = {"run": "celsius", "project": "demo"}
    fst.to_store(celsius.chunk(latitude=10), CLIMATE, run)
    got = xarray.open_dataset(CLIMATE, engine="fieldstone", request=run)
    xarray.testing.assert_equal(got.load(), celsius.load())
    say("ok: a Dataset computed by dask is written whole, and opens with the same values")
    region = {"time": slice(100, 110), "latitude": slice(3, 17), "longitude": slice(5, 44)}
    patch = celsius.isel(region) * 0
    fst.to_store(patch.drop_vars(patch.coords), CLIMATE, run, region=region)
    got = xarray.open_dataset(CLIMATE, engine="fieldstone", request=run)["air_temperature"].values
    expected = source - np.float32(273.15)
    expected[100:110, 3:17, 5:44] = 0
    check(np.array_equal(got, expected), "a region of it is replaced, aligned to no chunk")
    frame = fst.open(CLIMATE, "r").list("variable=air_temperature").to_pandas()
    warmest = frame.groupby("run")["max"].max()
    say(f"warmest value of each run, from the index alone: {warmest.round(2).to_dict()}")


def give_back(source: np.ndarray) -> None:
    shell("export", CLIMATE, f"run={AIR}", str((OUT / "again.nc").relative_to(ROOT)))
    with xarray.open_dataset(SAMPLES / f"{AIR}.nc") as file, xarray.open_dataset(OUT / "again.nc") as again:
        check(again.identical(file), "the exported netCDF file is identical to the ingested one")
    target = (OUT / "two.grib").relative_to(ROOT)
    shell("get", FORECAST, f'retrieve, class=rd, param=2t, date=20800101/20990101, target="{target}"')
    shell("export", FORECAST, "class=rd,expver=demo", str((OUT / "all.grib").relative_to(ROOT)))
    made = (OUT / "temperature.grib").read_bytes()
    check((OUT / "all.grib").read_bytes() == made, "the exported GRIB file equals the ingested one")
    check(len((OUT / "two.grib").read_bytes()) == len(made) // GRIB_YEARS * 2, "get wrote two messages")


def plot() -> None:
    request = f"run={AIR},variable=air_temperature,step=239"
    picture = OUT / "temperature-2099.png"
    file = str(picture.relative_to(ROOT))
    command = ["fieldstone", "plot", str(CLIMATE.relative_to(ROOT)), request, "-o", file]
    shell("run", CLIMATE, "--name", "plot", "--writes", file, "--", *command)
    check(picture.read_bytes().startswith(b"\x89PNG"), f"{picture.name} is a PNG picture")
    shell("plot", CLIMATE, request, "--width", "64", show=40)


def tag_and_find() -> None:
    """Sea surface temperature of 54 months along the equator: the warmest spot of every 10 degrees."""
    wide = 12  # elements of 10 degrees
    with netCDF4.Dataset(SAMPLES / f"{SEA}.nc") as dataset:
        sea = dataset["surface_temperature"][:].filled(np.nan)
        places = {name: np.asarray(dataset[name][:], "f8") for name in ("latitude", "longitude")}
    values, steps, starts, counts = [], [], [], []
    for month, west in itertools.product(range(len(sea)), range(0, sea.shape[2], wide)):
        tile = sea[month, :, west : west + wide]
        if np.isfinite(tile).any():
            y, x = np.nonzero(tile >= np.nanmax(tile) - 0.25)
            values.append(float(np.nanmax(tile)))
            steps.append(month)
            starts.append((y.min(), west + x.min()))
            counts.append((np.ptp(y) + 1, np.ptp(x) + 1))
    with fst.open(CLIMATE) as store:
        run = store.run(SEA)
        (declared,) = store.variables(run=SEA, variable="surface_temperature")
        check(declared.dims == tuple(places), f"the ingest declared {declared.name} with its coordinates")
        store.create_tag("maximum", type="float", unit="K")
        run.annotate_many(
            "maximum", values, variable="surface_temperature", step=steps, start=starts, count=counts
        )
    say(f"{len(values)} maxima of {len(sea)} months tagged, each with a box around similar cells")
    shell("tags", CLIMATE)
    store = fst.open(CLIMATE, mode="r")
    nino = {"run": SEA, "tag": "maximum", "box": {"longitude": fst.between(190, 239.5)}}
    months = [row.step for row in store.steps(**nino, value=fst.above(WARM))]
    region = (places["longitude"] >= 190) & (places["longitude"] <= 239.5)
    expected = np.flatnonzero(np.nanmax(sea[:, :, region], axis=(1, 2)) > WARM).tolist()
    check(months == expected, f"the middle Pacific exceeds {WARM} K in the months {months}, as in the file")
    shell("find", CLIMATE, f"tag=maximum and value>{WARM} and box(longitude=190..239.5)", show=4)
    hits = store.attributes(**nino, value=fst.above(WARM)).collect()
    strips = np.full((len(months), *sea.shape[1:]), np.nan)
    for hit in hits:
        box = tuple(slice(a, a + n) for a, n in zip(hit.start, hit.count, strict=True))
        warm = np.where((part := hit.read()) > 1e19, np.nan, part)
        if np.nanmax(warm) != np.float32(hit.value):
            raise SystemExit(f"   NOT SO: {hit} contains its maximum")
        strips[(months.index(hit.step), *box)] = warm
    share = np.isfinite(strips).sum() / sea.size
    check(np.nanmax(strips) > WARM, f"{len(hits)} boxes were read: {share:.2%} of the temperatures")
    figure, axes = plt.subplots(
        len(months), 1, figsize=(9, 1 + 0.6 * len(months)), sharex=True, squeeze=False
    )
    edges = (190, 240, places["latitude"][0], places["latitude"][-1])
    for month, strip, axis in zip(months, strips, axes[:, 0], strict=True):
        axis.imshow(
            strip[:, region], origin="lower", aspect="auto", extent=edges, vmin=WARM - 1, vmax=WARM + 1
        )
        axis.set_ylabel(f"{month}", rotation=0)
    figure.savefig(OUT / "warm-boxes.png")
    say("only these boxes are plotted: warm-boxes.png")


def many_processes_one_file() -> None:
    """Converts a real netCDF classic file; then the ranks of an MPI job write graphs of a detector."""
    source, partitioned, again = OUT / f"{MESH}.nc", OUT / f"{MESH}.fsp", OUT / "mesh.nc"
    shutil.copy(SAMPLES / source.name, source)
    for given, made, form in ((source, partitioned, "partitioned"), (partitioned, again, "cdf2")):
        shell("container convert", given, str(made.relative_to(ROOT)), "--format", form)
    with netCDF4.Dataset(source) as before, netCDF4.Dataset(again) as after:
        same = all(np.array_equal(before[name][...], after[name][...]) for name in before.variables)
        check(
            same and list(before.variables) == list(after.variables),
            f"{MESH}, partitioned and back: netCDF4 reads the same {len(before.variables)} variables",
        )
    events = OUT / "events.nc"
    words = ["examples/detector.py", "write", str(events.relative_to(ROOT)), "--events", str(EVENTS)]
    mpiexec(4, words)
    shell("container header", events, show=12)
    shell("container validate", events)
    one = EVENTS * 2 // 3
    with netCDF4.Dataset(events) as file:
        arrays = {name: file[f"event_{one}.{name}"][...] for name in detector.ARRAYS}
    sample = detector.simulate(one)
    check(all(np.array_equal(arrays[name], sample[name]) for name in arrays), f"netCDF4 reads event {one}")
    begun = time.perf_counter()
    with container.open(events) as file:
        charge = file[f"event_{one}/charge"][:]
        took = time.perf_counter() - begun
    check(
        np.array_equal(charge, sample["charge"]),
        f"one of {len(arrays) * EVENTS} found in {took * 1e3:.1f} ms",
    )
    loader = detector.Loader(str(events), batch=32)
    hits = sum(len(batch.charge) for batch in loader)
    say(f"{len(loader)} training batches in random order: {hits} hits")


def flow_on_a_mesh() -> None:
    """Puts a tracer on the mesh of the same file: four ranks compute, then three ranks continue."""
    shell("ingest", FLOW, str((OUT / f"{MESH}.nc").relative_to(ROOT)), "--mesh", "globe")
    with netCDF4.Dataset(SAMPLES / f"{MESH}.nc") as file:
        values = np.asarray(file["synthetic"][:], "f8")
    with fst.open(FLOW) as store, store.arrays("flow") as job:
        mesh = job.mesh("globe")
        faces, nodes = mesh.read("faces"), mesh.counts["node"]
        whole = flow.Part(mesh.read("x"), mesh.read("y"), *every_edge(job))
        # The value at a node is the mean of the faces around it.
        sums, times = (np.bincount(faces.ravel(), weights, nodes) for weights in (np.repeat(values, 4), None))
        tracer = sums / times
        group = job.group("state", {"tracer": "f8"}, mesh="globe", location="node")
        group.write("tracer", 0, tracer)
    expected = [tracer]
    for _ in range(FLOW_STEPS * 2):
        expected.append(flow.advance(expected[-1], whole))
    for count in (4, 3):
        words = ["examples/flow.py", str(FLOW.relative_to(ROOT)), str(FLOW_STEPS)]
        mpiexec(count, words)
    reader = fst.open(FLOW, mode="r")
    got = reader.to_xarray("run=flow,variable=tracer").tracer
    check(got.shape == (2 * FLOW_STEPS + 1, nodes), f"two jobs wrote {got.shape[0]} steps at {nodes} nodes")
    check(np.array_equal(got.values, np.stack(expected)), "each step equals that of one process, bit for bit")
    check(np.allclose(got.sum(got.dims[1]), tracer.sum()), "the total of the tracer stays the same")
    grid = uxarray.open_grid(reader.mesh("globe").path)
    means = uxarray.UxDataset.from_xarray(got.to_dataset(), uxgrid=grid).tracer.topological_mean("face")
    corners = got.values[:, faces].mean(axis=2)
    check(np.allclose(means.values, corners), "uxarray computes the means over faces from it")
    request = f"run=flow,variable=tracer,step={2 * FLOW_STEPS}"
    shell("plot", FLOW, request, "-o", str((OUT / "flow.png").relative_to(ROOT)))
    check((OUT / "flow.png").read_bytes().startswith(b"\x89PNG"), "the plot on the mesh is a PNG: flow.png")
    shell("plot", FLOW, request, "--width", "64", show=40)
    shell("mesh", FLOW, "globe", "--xdmf", "flow", "-o", str((OUT / "flow.xdmf").relative_to(ROOT)))
    say("ParaView opens flow.xdmf, which copies no values: it refers to places in the store's files.")
    shell("verify", FLOW)


def every_edge(job: fst.ArrayJob) -> tuple[np.ndarray, np.ndarray]:
    """The numbers and ends of all edges of the mesh."""
    part = job.partition("globe", "block", history=False)
    return part.edges, part.ends


def mpiexec(ranks: int, words: list[str]) -> None:
    """Runs the ranks of an MPI job, and prints their output, sorted by rank."""
    say(f"$ mpiexec -n {ranks} python {shlex.join(words)}")
    command = [PROGRAM.parent / "mpiexec", "-n", str(ranks), sys.executable, *words]
    # There are more ranks than cores: a waiting rank yields to the others.
    environment = os.environ | {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"exit {done.returncode}:\n{done.stdout}{done.stderr}")
    say(*(f"  {line}" for line in sorted(done.stdout.splitlines())))


def where_it_came_from() -> None:
    """Traces the plot that `fieldstone run` made in chapter 11, of fields that chapter 1 ingested."""
    picture = OUT / "temperature-2099.png"
    shell("trace", CLIMATE, str(picture.relative_to(ROOT)), show=16)
    shell("graph travel", CLIMATE, f"v({picture}).e(wasWrittenBy).e(wasRunBy)")
    drawing = OUT / "where-it-came-from.svg"
    target = str(drawing.relative_to(ROOT))
    shell("graph export", CLIMATE, str(picture.relative_to(ROOT)), "--format", "svg", "--output", target)
    with fst.open(CLIMATE, mode="r") as store:
        lineage = store.graph.trace(("file", str(picture)))
        sources = [Path(id).name for type, id in lineage.vertices if type == "file" and id.endswith(".nc")]
    check(sources == [f"{AIR}.nc"], f"of all files, only {AIR}.nc went into the plot")
    check(drawing.read_text().startswith("<svg"), f"{drawing.name} draws the lineage")


def main() -> None:
    begun = time.perf_counter()
    # The program starts its Python helper with this interpreter.
    path = os.pathsep.join([str(PROGRAM.parent), os.environ.get("PATH", "")])
    os.environ |= {"FIELDSTONE_PYTHON": sys.executable, "MPLBACKEND": "agg", "PATH": path}
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    source = source_values()
    print(f"Fieldstone {fst.__version__}: a tour on real data. Results are compared with the source.")
    with chapter(1, "Real netCDF files become fields"):
        take_netcdf()
    with chapter(2, "Find them by meaning, in the shell"):
        find()
    with chapter(3, "Read them in Python"):
        read(source)
    with chapter(4, "Replace a field, and go back"):
        overwrite(source)
    with chapter(5, "Kill a writer"):
        kill_a_writer()
    with chapter(6, "Damage is found and named"):
        damage_a_copy()
    with chapter(7, "GRIB messages, by their MARS keys"):
        take_grib(source)
    with chapter(8, "Open in xarray"):
        open_in_xarray(source)
    with chapter(9, "Write from xarray"):
        write_from_xarray(source)
    with chapter(10, "Export the files again"):
        give_back(source)
    with chapter(11, "Plot"):
        plot()
    with chapter(12, "Tag, find, and read what was found"):
        tag_and_find()
    with chapter(13, "Many processes, one file"):
        many_processes_one_file()
    with chapter(14, "A flow on a real mesh, by four ranks and then by three"):
        flow_on_a_mesh()
    with chapter(15, "Trace that plot to its sources"):
        where_it_came_from()
    print(f"\nDone in {time.perf_counter() - begun:.0f} s. Results:")
    for path in sorted(OUT.iterdir()):
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files) / 1e6
        kind = "" if path.is_file() else f", a store of {len(files)} files"
        say(f"{path.relative_to(ROOT)}: {size:.2f} MB{kind}")
    say("Next: .venv/bin/fieldstone list demo-out/climate   or   docs/guide/README.md")


if __name__ == "__main__":
    main()

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from parabit import ParagraphVectors, Vocabulary, __version__
from parabit.errors import ModelError, ParabitError
from parabit.model import is_model
from topics import Topics

QUICK: dict[str, Any] = {"epochs": 2, "samples": 64, "inference_rounds": 3, "device": "cpu"}
MODELS: dict[str, dict[str, Any]] = {
    "dbow": {"bits": 16, "bigrams": True, "min_count": 2},
    "real-binary": {"bits": 12, "dim": 40, "stop_words": frozenset({"und", "oder"})},
    "real-valued": {"bits": None, "dim": 20, "preset": "paper"},
    "dm": {"bits": 16, "architecture": "dm", "seed": 5},
}
FILES = ["README.md", "config.json", "model.safetensors", "vocabulary.parquet"]

# What the training documents of the committed models are coded as.
CODES_OF_OLD_MODELS = {
    "format-1": [[232], [84], [41], [135], [86], [151]],
    "format-2": [[78], [78], [241], [177], [78], [52]],
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, topics: Topics) -> ParagraphVectors:
    return ParagraphVectors(**QUICK, **MODELS[request.param]).fit(topics.texts)


@pytest.fixture(scope="module")
def dbow(topics: Topics) -> ParagraphVectors:
    return ParagraphVectors(16, **QUICK).fit(topics.texts)


@pytest.fixture
def saved(dbow: ParagraphVectors, tmp_path: Path) -> Path:
    dbow.save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_that_was_saved_and_loaded_gives_the_same_codes(
    model: ParagraphVectors, topics: Topics, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    loaded = ParagraphVectors.load(tmp_path / "model", device="cpu")
    texts = [*topics.texts, "", "qqqq"]
    ours, theirs = model.infer(texts), loaded.infer(texts)
    assert ours.vectors.tobytes() == theirs.vectors.tobytes()
    assert (ours.codes is None) == (theirs.codes is None)
    assert ours.codes is None or ours.codes.tobytes() == theirs.codes.tobytes()
    assert loaded.embeddings_.tobytes() == model.embeddings_.tobytes()
    assert (loaded.codes_ is None) == (model.codes_ is None)
    assert loaded.get_params() == model.get_params()
    for name in ("shape_", "recipe_", "history_", "kept_", "vocabulary_"):
        assert getattr(loaded, name) == getattr(model, name)
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "model")


def test_a_model_folder_has_these_four_files_and_says_what_it_is(saved: Path) -> None:
    assert [path.name for path in sorted(saved.iterdir())] == FILES
    config = json.loads((saved / "config.json").read_text())
    assert (config["format"], config["parabit"]) == (2, __version__)
    assert config["parameters"]["bits"] == 16
    assert config["recipe"]["epochs"] == 2
    assert "device" not in config["parameters"]  # where it was trained is no property of the model
    assert config["training"]["documents"] == 300
    card = (saved / "README.md").read_text()
    assert card.startswith("# Binary PV-DBOW, 16 bits a document\n")
    assert "| documents | 300 |" in card
    assert f"{config['training']['history'][1]['completion']:.4f}" in card
    assert is_model(saved)


def test_a_slim_model_has_no_documents_and_gives_the_same_codes(
    model: ParagraphVectors, topics: Topics, tmp_path: Path
) -> None:
    model.save(tmp_path / "fat")
    model.save(tmp_path / "slim", slim=True)
    assert "documents" in load_file(tmp_path / "fat" / "model.safetensors")
    assert "documents" not in load_file(tmp_path / "slim" / "model.safetensors")
    assert "left out (slim)" in (tmp_path / "slim" / "README.md").read_text()
    slim = ParagraphVectors.load(tmp_path / "slim", device="cpu")
    assert slim.embeddings_ is None
    model.save(tmp_path / "whole")
    assert ParagraphVectors.load(tmp_path / "whole", device="cpu", slim=True).embeddings_ is None
    assert slim.codes_ is None
    assert slim.transform(topics.texts).tobytes() == model.transform(topics.texts).tobytes()
    with pytest.raises(ModelError, match="^this model is slim and has no embeddings to save; save it with slim=True$"):
        slim.save(tmp_path / "fat again")
    assert not (tmp_path / "fat again").exists()
    slim.save(tmp_path / "slim again", slim=True)
    assert contents(tmp_path / "slim again") == contents(tmp_path / "slim")


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        change(config)
        (folder / "config.json").write_text(json.dumps(config))

    return harm


def put(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def cut(name: str, share: float) -> Callable[[Path], object]:
    def harm(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * share)])

    return harm


def drop(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def retensor(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def harm(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        change(tensors)
        save_file(tensors, folder / "model.safetensors")

    return harm


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (shutil.rmtree, "no model in {folder}; make one with `parabit train CORPUS -o FOLDER`"),
        (drop("config.json"), "no model in {folder}"),
        (put("config.json", b""), "{folder}/config.json is damaged; train the model anew"),
        (put("config.json", b"{"), "{folder}/config.json is damaged"),
        (put("config.json", b"\xff\xfe{}"), "{folder}/config.json is damaged"),
        (put("config.json", b"[]"), "{folder}/config.json is damaged"),
        (put("config.json", b"7"), "{folder}/config.json is damaged"),
        (put("config.json", b"{}"), "{folder}/config.json is damaged"),
        (put("config.json", b'{"format": "one"}'), "{folder}/config.json is damaged"),
        (put("config.json", b'{"format": 1}'), "{folder}/config.json is not that of a model; train the model anew"),
        (cut("config.json", 0.9), "{folder}/config.json is damaged"),
        (edit(lambda c: c.pop("recipe")), "{folder}/config.json is not that of a model"),
        (edit(lambda c: c.update(recipe=[])), "{folder}: config.json is not that of a model"),
        (edit(lambda c: c["recipe"].update(epochs=-1)), "{folder}: config.json is not that of a model"),
        (edit(lambda c: c["recipe"].update(colour="red")), "{folder}: config.json is not that of a model"),
        (edit(lambda c: c.update(shape={})), "{folder}: config.json is not that of a model"),
        (edit(lambda c: c.update(parameters=[])), "{folder}: config.json is not that of a model"),
        (edit(lambda c: c["parameters"].update(colour="red")), "{folder}: config.json is not that of a model"),
        (edit(lambda c: c.update(training={})), "{folder}: config.json is not that of a model"),
        (edit(lambda c: c.update(format=3)), "{folder} has format 3, this version of parabit reads up to 2; upgrade"),
        (put("config.json", b'{"format": 3}'), "{folder} has format 3, this version of parabit reads up to 2; upgrade"),
        (drop("model.safetensors"), "{folder}/model.safetensors is damaged or missing; train the model anew"),
        (put("model.safetensors", b""), "{folder}/model.safetensors is damaged or missing"),
        (put("model.safetensors", b"not tensors at all"), "{folder}/model.safetensors is damaged or missing"),
        (cut("model.safetensors", 0.5), "{folder}/model.safetensors is damaged or missing"),
        (cut("model.safetensors", 0.001), "{folder}/model.safetensors is damaged or missing"),
        (drop("vocabulary.parquet"), "{folder}/vocabulary.parquet is damaged or missing; train the model anew"),
        (put("vocabulary.parquet", b""), "{folder}/vocabulary.parquet is damaged or missing"),
        (put("vocabulary.parquet", b"no table"), "{folder}/vocabulary.parquet is damaged or missing"),
        (cut("vocabulary.parquet", 0.5), "{folder}/vocabulary.parquet is damaged or missing"),
        (retensor(lambda t: t.pop("words")), "{folder}/model.safetensors does not belong to its "),
        (retensor(lambda t: t.update(words=t["words"][:-1])), "{folder}/model.safetensors does not belong to its "),
        (
            retensor(lambda t: t.update(words=np.ascontiguousarray(t["words"][:, :9]))),
            "{folder}/model.safetensors does not belong to its ",
        ),
        (
            retensor(lambda t: t.update(documents=np.ascontiguousarray(t["documents"][:, :9]))),
            "{folder}/model.safetensors does not belong to its ",
        ),
        (
            retensor(lambda t: t.update(encoder=t["encoder"][:-1])),
            "{folder}/model.safetensors does not belong to its config.json; train the model anew",
        ),
        (
            retensor(lambda t: t.update(encoder=np.ascontiguousarray(t["encoder"][:, :9]))),
            "{folder}/model.safetensors does not belong to its ",
        ),
        (
            retensor(lambda t: t.update(encoder_offset=t["encoder_offset"][:9])),
            "{folder}/model.safetensors does not belong to its ",
        ),
        (
            retensor(lambda t: t.update(encoder_offset=t["encoder_offset"][None])),
            "{folder}/model.safetensors does not belong to its ",
        ),
        (
            retensor(lambda t: t.update(colours=np.zeros((3, 3), dtype=np.float32))),
            "{folder}",
        ),
    ],
)
def test_what_is_wrong_with_a_model_folder_is_told(saved: Path, harm: Callable[[Path], object], words: str) -> None:
    harm(saved)
    with pytest.raises(ModelError) as refused:
        ParagraphVectors.load(saved, device="cpu")
    assert str(refused.value).startswith(words.format(folder=saved))


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(ModelError, match="no model in"):
        ParagraphVectors.load(tmp_path / "file")
    assert not is_model(tmp_path / "file")


def test_a_real_binary_model_without_its_projection_is_told(topics: Topics, tmp_path: Path) -> None:
    ParagraphVectors(12, dim=16, **QUICK).fit(topics.texts[:50]).save(tmp_path / "model")
    retensor(lambda tensors: tensors.pop("projection"))(tmp_path / "model")
    with pytest.raises(ModelError):
        ParagraphVectors.load(tmp_path / "model", device="cpu")


def test_files_of_two_models_do_not_make_a_third(saved: Path, topics: Topics, tmp_path: Path) -> None:
    other = tmp_path / "other"
    ParagraphVectors(16, **QUICK).fit(topics.texts[:100]).save(other)
    shutil.copy(other / "vocabulary.parquet", saved)
    with pytest.raises(ModelError, match=f"^{saved} has the vocabulary of another model; train the model anew$"):
        ParagraphVectors.load(saved, device="cpu")


def test_what_is_there_is_not_overwritten_unless_asked_for(saved: Path, topics: Topics) -> None:
    before = contents(saved)
    other = ParagraphVectors(8, **QUICK).fit(topics.texts[:50])
    with pytest.raises(ParabitError, match="model is there already; choose another name, or ask for it to be overw"):
        other.save(saved)
    assert contents(saved) == before
    other.save(saved, overwrite=True)
    assert ParagraphVectors.load(saved, device="cpu").bits == 8
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("kind", ["file", "empty folder", "folder of mine", "model with notes", "link"])
def test_what_is_no_model_is_never_replaced(kind: str, saved: Path, dbow: ParagraphVectors) -> None:
    place = saved.with_name("place")
    if kind == "file":
        place.write_text("mine")
    elif kind == "link":
        place.symlink_to("nowhere")
    elif kind == "model with notes":
        shutil.copytree(saved, place)
        (place / "notes.txt").write_text("mine")
    else:
        place.mkdir()
        if kind == "folder of mine":
            (place / "config.json").write_text('{"mine": true}')
    for overwrite in (False, True):
        with pytest.raises(ParabitError, match="place is there"):
            dbow.save(place, overwrite=overwrite)
    assert place.is_symlink() == (kind == "link")
    if kind == "model with notes":
        assert [path.name for path in sorted(place.iterdir())] == [*FILES[:3], "notes.txt", FILES[3]]
    if kind == "file":
        assert place.read_text() == "mine"
    assert {path.name for path in saved.parent.iterdir()} == {"model", "place"}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize("there", [False, True])
def test_an_interrupted_save_leaves_the_old_model_and_nothing_else(
    there: bool, error: type[BaseException], saved: Path, dbow: ParagraphVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(saved)
    place = saved if there else saved.with_name("new")

    def interrupted(self: Vocabulary, path: Path) -> None:
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(Vocabulary, "save", interrupted)
    with pytest.raises(error):
        dbow.save(place, overwrite=True)
    assert contents(saved) == before
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def test_a_model_saved_over_itself_while_loaded_stays_whole(saved: Path, topics: Topics) -> None:
    before = contents(saved)
    loaded = ParagraphVectors.load(saved, device="cpu")
    loaded.save(saved, overwrite=True)
    assert contents(saved) == before
    assert loaded.transform(topics.texts[:3]).tobytes() == (
        ParagraphVectors.load(saved, device="cpu").transform(topics.texts[:3]).tobytes()
    )


def test_there_must_be_a_folder_to_save_in(dbow: ParagraphVectors, tmp_path: Path) -> None:
    with pytest.raises(ParabitError, match="there is no folder .*no/such to write model in; make it first"):
        dbow.save(tmp_path / "no" / "such" / "model")


def test_a_folder_of_every_format_so_far_loads() -> None:
    for folder in sorted((Path(__file__).parent / "models").iterdir()):
        model = ParagraphVectors.load(folder, device="cpu")
        assert model.codes_ is not None
        assert model.codes_.tolist() == CODES_OF_OLD_MODELS[folder.name]
        assert model.transform(["a lantern in the dark street", "boats on the river"]).shape == (2, 1)
        assert model.coverage(["lantern xyzzy"]).tolist() == [0.5]

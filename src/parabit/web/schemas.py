"""What goes over the wire, for the description of the API."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

Identity = StrictStr | StrictInt
Value = StrictStr | StrictInt | StrictFloat | StrictBool | None
Comparison = Literal["=", "!=", ">", ">=", "<", "<="]
Position = Annotated[list[int], Field(min_length=2, max_length=2, description="x and y on the map, 0 to 65535")]
Code = Annotated[
    str, Field(description="the packed code in hexadecimal; the first bit is the highest of the first byte")
]


class Problem(BaseModel):
    """What went wrong, and what to do about it."""

    error: str
    hint: str = ""


class Limits(BaseModel):
    """How much a request may ask for."""

    k: int
    radius: int
    characters: int
    seconds: float


class About(BaseModel):
    """What the index is and what it can do."""

    name: str
    version: str
    documents: int
    bits: int
    texts: bool = Field(description="whether it can be asked with a text; else only with a document that is in it")
    text_kept: bool = Field(description="whether hits come with their text")
    ranks: list[str]
    best_rank: str
    fields: list[str]
    examples: list[str]
    limits: Limits


class Label(BaseModel):
    """A label and how many documents have it."""

    label: str
    documents: int


class LabelList(BaseModel):
    """The most frequent labels."""

    labels: list[Label]
    complete: bool = Field(description="false where a rare label may be missing; counts are exact all the same")


class Piece(BaseModel):
    """A stretch of a text; marked where it is a word of the query."""

    text: str
    mark: bool = False


class Question(BaseModel):
    """A search: by a text, or by a document that is in the index."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "hubble telescope repair", "k": 5}]}
    )

    query: StrictStr | None = Field(None, description="a text; give this or `like`")
    like: Identity | None = Field(None, description="the id of a document; it is not among its own hits")
    k: StrictInt | None = Field(None, ge=1, description="how many hits; 10 where it is left out")
    radius: StrictInt | None = Field(None, ge=0, description="only documents within so many bits")
    rank: StrictStr | None = Field(None, description="how to order them; the index's best where it is left out")
    labels: list[StrictStr] | None = Field(None, description="only documents with one of these labels", max_length=100)
    where: dict[str, Value | list[Value] | dict[Comparison, Value | list[Value]]] | None = Field(
        None,
        description="only documents that have the value, or one of the values, in each field, or that compare so: "
        '{"year": {">=": 2000, "<": 2010}}',
    )


class Why(BaseModel):
    """What a score is made of."""

    words: dict[str, float] = Field(description="the words that matched, as the index has them, with their share")
    code: float = Field(description="the share that comes from the code")


class Hit(BaseModel):
    """A document that was found."""

    id: Identity
    title: str = Field(description="or the first line of its text")
    distance: int = Field(description="the number of bits that differ from the query's")
    score: float = Field(description="higher is better")
    why: Why
    labels: list[str]
    fields: dict[str, Any]
    code: Code
    passage: list[Piece] = Field(description="the part of its text with most words of the query")
    position: Position | None


class Answer(BaseModel):
    """What was found, the best first."""

    known: bool = Field(description="false if no document has a word of the query, which then has no hits")
    rank: str
    documents: int
    seconds: float
    code: Code
    words: list[str] = Field(description="the words that were searched for, as the index has them")
    unknown: list[str] = Field(description="words of the query that no document has")
    corrected: dict[str, str] = Field(description="such words, each with the one that was searched for instead")
    position: Position | None
    notes: list[str] = Field(description="what was done with the query, in words")
    hits: list[Hit]


class Whole(BaseModel):
    """A document with all that is kept of it."""

    id: Identity
    text: list[Piece]
    cut: bool = Field(description="whether the text goes on")
    labels: list[str]
    fields: dict[str, Any]
    code: Code
    position: Position | None


class Chart(BaseModel):
    """The map: its points, or why there are none yet."""

    state: Literal["ready", "drawing", "none"]
    why: str = ""
    share: float | None = Field(None, description="of the drawing that is done")
    documents: int = 0
    points: int = 0
    x: list[int] = []
    y: list[int] = []
    label: list[int] = Field([], description="places in `labels`, or -1")
    labels: list[str] = []
    ids: list[Identity] = []


class Health(BaseModel):
    """Whether the server can answer."""

    status: Literal["ok", "failing"]
    documents: int
    version: str
    error: str = ""

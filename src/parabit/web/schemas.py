"""What requests and answers look like, for checking requests and for the description of the API."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from parabit.budget import LONGEST_REQUESTED_ID, LONGEST_VALUE, MOST_CONDITIONS, MOST_VALUES

Identity = StrictStr | StrictInt
ShortText = Annotated[StrictStr, Field(max_length=LONGEST_VALUE)]
Value = ShortText | StrictInt | StrictFloat | StrictBool | None
Values = Annotated[list[Value], Field(max_length=MOST_VALUES)]
Comparison = Literal["=", "!=", ">", ">=", "<", "<="]
Position = Annotated[
    list[int], Field(min_length=2, max_length=2, description="x and y on the map, 0 to 65535")
]
Code = Annotated[
    str, Field(description="the packed code in hexadecimal; the first bit is the highest of byte 0")
]


class Problem(BaseModel):
    """What went wrong, and what to do about it."""

    error: str
    hint: str = ""


class Listed(BaseModel):
    """A document in a list."""

    id: Identity
    title: str
    fields: dict[str, Any]


class Piece(BaseModel):
    """A part of a text; marked if it is a word of the query."""

    text: str
    mark: bool = False


class Query(BaseModel):
    """A search: by a text, or by a document that is in the index."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": "hubble telescope", "k": 5}]}
    )

    query: StrictStr | None = Field(None, description="a text; give this or `like`")
    like: Annotated[StrictStr, Field(max_length=LONGEST_REQUESTED_ID)] | StrictInt | None = Field(
        None, description="the id of a document, which is not among its own hits"
    )
    k: StrictInt = Field(10, ge=1, description="how many hits")
    radius: StrictInt | None = Field(
        None, ge=0, description="only codes that differ in at most this many bits"
    )
    rank: StrictStr | None = Field(
        None, description="how to order them; by default the best that the index can do"
    )
    where: dict[ShortText, Value | Values | dict[Comparison, Value | Values]] | None = Field(
        None,
        max_length=MOST_CONDITIONS,
        description="only documents whose field has the value, or one of the values, or compares so: "
        '{"labels": ["space", "orbit"], "year": {">=": 2000, "<": 2010}}',
    )
    collapse: StrictBool = Field(False, description="put near-copies of a hit into its `copies`")
    why: StrictBool = Field(False, description="say what each score is made of")
    positions: StrictBool = Field(
        False, description="say where the query and its hits lie on the map"
    )

    @property
    def kind(self) -> str:
        """What searches that are answered together have in common, as Python writes it: True and 1 differ in it."""
        return repr((self.query is None, self.model_dump(exclude={"query", "like"})))


class Why(BaseModel):
    """What a score is made of."""

    words: dict[str, float] = Field(
        description="the words of the query that matched, with their share"
    )
    code: float = Field(description="the share that comes from the code")


class Hit(Listed):
    """A document that was found."""

    distance: int | None = Field(
        description="the number of bits that differ from the query's code, if it has one"
    )
    score: float = Field(description="higher is better")
    code: Code
    snippet: list[Piece] = Field(description="the part of its text with most words of the query")
    position: Position | None = None
    why: Why | None = None
    copies: list["Hit"] = []


class Answer(BaseModel):
    """What was found, the best first."""

    known: bool = Field(
        description="false if no document has a word of the query, which then has no hits"
    )
    rank: str
    documents: int
    seconds: float
    code: Code | None = Field(description="the query's; null if the model knows no word of it")
    words: list[str] = Field(description="the words that were searched for, as the index has them")
    unknown: list[str] = Field(description="words of the query that no document has")
    corrected: dict[str, str] = Field(
        description="words that no document has, each with what was searched instead"
    )
    position: Position | None
    notes: list[str] = Field(description="what was done with the query, in words")
    hits: list[Hit]


class Whole(Listed):
    """A document with everything that is kept of it."""

    text: list[Piece]
    cut: bool = Field(description="whether the text goes on")
    code: Code
    position: Position | None

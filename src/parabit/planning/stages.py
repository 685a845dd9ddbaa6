"""What each stage takes: the arithmetic of one core, divided among workers, beside what disks and the network carry."""

from dataclasses import dataclass

from parabit.planning import sizes
from parabit.planning.costs import Costs
from parabit.planning.figures import Figures
from parabit.planning.question import Question

_MERGED = 1e9  # bytes in which a worker merges counts, at most
_BATCH_OF_TEXT = 30e6  # bytes of texts and their tokens under way in a worker
MAPPED_ABOVE = 0.25  # of the memory: larger tables of documents are kept in files


@dataclass(frozen=True)
class Stage:
    """What a stage takes. Bytes of memory are a worker's, those of the disk and of traffic are of all together.

    Example:
        >>> stage = Stage("encoding", {"cores": 7200.0, "disk": 60.0, "network": 0.0}, 1e9, 2e9, 0.0)
        >>> stage.hours, stage.limited_by
        (2.0, 'cores')
    """

    name: str
    seconds: dict[str, float]  # that cores, disks and network work
    memory: float
    disk: float
    traffic: float
    workers: int = 1
    one_after_the_other: bool = False  # or they work at the same time

    @property
    def hours(self) -> float:
        """With all workers."""
        spent = self.seconds.values()
        return (sum(spent) if self.one_after_the_other else max(spent)) / 3600

    @property
    def limited_by(self) -> str:
        """What most of the time is spent on, or waited for."""
        return max(self.seconds, key=lambda name: self.seconds[name])


@dataclass(frozen=True)
class Search:
    """What a query takes in an index that is cut into shards, each searched by a worker of its own."""

    codes: int  # of a shard
    bytes_read: float  # of a shard's codes, a query
    milliseconds: float  # the scan of a shard, by one core, for one query alone
    milliseconds_in_a_batch: float  # and a query, where many are asked together
    hashing_milliseconds: float | None  # with hashing, where so many codes were measured
    memory: float  # bytes of a worker that has one shard
    queries_a_second: float  # that all shards together answer, scanning in batches
    cores_needed: float | None  # for the queries that are to be served


class Working:
    """A question, what the corpus is like, and what work costs: all that stages are computed from."""

    def __init__(self, question: Question, costs: Costs) -> None:
        self.question, self.costs = question, costs
        self.figures = Figures.of(question, costs)

    @property
    def several(self) -> bool:
        """Whether there is anything to send."""
        return self.question.workers > 1

    def sending(self, size: float) -> float:
        """Seconds that a worker's network takes for so many bytes."""
        return size * 8 / (self.question.network * 1e9) if self.several else 0.0

    def writing(self, size: float) -> float:
        """Seconds that a worker's disk takes for so many bytes."""
        return size / (self.question.disk * 1e6)

    def spread(self, reading: float, work: float) -> float:
        """Seconds of work on all documents, done by all workers; one core of each reads, whatever the others do."""
        question = self.question
        return max(reading, (reading + work) / question.cores) / question.workers

    def counting(self) -> Stage:
        """Read texts, cut them into words, count words and bigrams; counts are merged by ranges of keys."""
        question, figures, about = self.question, self.figures, self.costs.about
        count, workers = question.trained, question.workers
        tokens, text = count * figures.tokens, count * figures.characters
        reading, cutting = self.costs.seconds(read_character=text), self.costs.seconds(cut_character=text)
        pairs = self.costs.seconds(bigram_token=tokens) if question.bigrams else 0.0
        # Partial counts: a word, its bytes and a number; a pair as one number and its count.
        counts = tokens * about["counted_words"] * (about["word_bytes"] + 16)
        counts += tokens * about["counted_pairs"] * 16 if question.bigrams else 0.0
        aside = 4 * tokens + 8 * count + counts
        exchanged = counts * (workers - 1) / workers
        traffic = text + exchanged if self.several else 0.0
        return Stage(
            "counting",
            {
                "cores": self.spread(reading, cutting + pairs),
                "disk": self.writing((text * (not self.several) + 2 * aside) / workers),
                "network": self.sending(traffic / workers),
            },
            self.costs.bytes["counting"] + min(_MERGED, counts / workers * 4) + 16 * count / workers
            + figures.features * self.costs.bytes["feature_memory"],
            aside,
            traffic,
            workers,
        )  # fmt: skip

    def bags(self) -> Stage:
        """Word ids and counts of each document; with several workers these make them and the first writes them."""
        question, figures = self.question, self.figures
        size = self.bags_bytes
        cost = "bag_bigram_word" if question.bigrams else "bag_word"
        work = self.costs.seconds(**{cost: question.trained * figures.words})
        return Stage(
            "bags",
            {
                "cores": self.spread(0.0, work),
                "disk": self.writing(size),
                "network": self.sending(size),
            },
            self.costs.bytes["counting"] + figures.features * self.costs.bytes["feature_memory"] + _BATCH_OF_TEXT,
            size,
            size if self.several else 0.0,
            question.workers,
        )

    @property
    def bags_bytes(self) -> float:
        """The bags of what is trained on."""
        question, figures = self.question, self.figures
        return sizes.bags(question.trained, figures.words, figures.entries, question.id_bytes)

    def encoding(self) -> Stage:
        """Texts to codes: read, cut, count, and one sparse product; each shard's codes are written by its worker."""
        question, figures, costs = self.question, self.figures, self.costs
        count, units = question.documents, question.units
        text, words, entries = count * figures.characters, count * figures.words, count * figures.entries
        counting = {"count_bigram_word" if question.bigrams else "count_word": words}
        work = costs.seconds(
            cut_character=text,
            product_entry=entries,
            product_entry_unit=entries * units,
            encode_document=count,
            **counting,
        )
        size = count * (question.code_bytes + question.id_bytes)
        if question.dim is not None:
            size += sizes.embeddings(count, question.dim)
        traffic = text + size if self.several else 0.0
        return Stage(
            "encoding",
            {
                "cores": self.spread(costs.seconds(read_character=text), work),
                "disk": self.writing((text * (not self.several) + 2 * size) / question.workers),
                "network": self.sending(traffic / question.workers),
            },
            self.loaded_model + costs.bytes["process"] + _BATCH_OF_TEXT * question.cores,
            size,
            traffic,
            question.workers,
        )

    @property
    def loaded_model(self) -> float:
        """The model in the memory of a worker that encodes."""
        question = self.question
        names = self.costs.bytes["feature_memory"]
        return sizes.loaded_model(self.figures.features, question.hidden, question.units, names)

    def index(self) -> Stage:
        """Codes to an index with ids, in so many shards, and tables that find near codes."""
        question = self.question
        codes = -(-question.documents // question.shards)
        making = self.costs.at("index", codes) + self.costs.at("multi_build", codes) * question.code_bytes / 16
        size = sizes.index(codes, question.code_bytes, question.id_bytes) + sizes.hashing(codes, question.bits)
        if question.dim is not None:
            size += codes * question.dim * 2
        at_once = min(question.shards, question.workers)
        rounds = -(-question.shards // at_once)
        traffic = question.documents * (question.code_bytes + question.id_bytes) if self.several else 0.0
        return Stage(
            "index",
            {
                "cores": making * rounds,  # one core: sorting is not divided
                "disk": self.writing(size * rounds),
                "network": self.sending(traffic / at_once),
            },
            self.costs.bytes["process"] + codes * question.code_bytes + 1.5 * sizes.hashing(codes, question.bits)
            + 8 * codes,
            size * question.shards,
            traffic,
            question.workers,
        )  # fmt: skip

    def search(self) -> Search:
        """The exact scan of each shard, and hashing where it was measured."""
        question, costs = self.question, self.costs
        codes = -(-question.documents // question.shards)
        read = codes * question.code_bytes
        alone = costs.seconds(scan_alone_code=codes, scan_alone_byte=read)
        batch = costs.seconds(scan_code=codes, scan_byte=read)
        measured = [size for size, _ in costs.curves["multi_alone"]]
        hashed = question.bits == 128 and measured[0] <= codes <= measured[-1]
        return Search(
            codes,
            read,
            alone * 1e3,
            batch * 1e3,
            costs.at("multi_alone", codes) if hashed else None,
            costs.bytes["process"] + read + sizes.hashing(codes, question.bits),
            question.cores / batch,
            None if question.queries is None else question.queries * batch * question.shards,
        )

"""The languages whose words can be stemmed."""

from parabit.errors import ParabitError

LANGUAGES = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}


def check_language(language: str | None) -> None:
    """Raise unless words of this language can be stemmed.

    Parameters:
        language: Its code, such as en; None for no stemming.
    """
    if language is not None and language not in LANGUAGES:
        hint = f"there are {', '.join(LANGUAGES)}, and none"
        raise ParabitError(f"no stemmer for the language {language!r}", hint)

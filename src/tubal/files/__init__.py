"""From files to samples: pictures, arrays and tables of many formats, read and checked."""

from tubal.files.loaded import Loaded
from tubal.files.loading import FORMATS, is_pictures, load

__all__ = ["FORMATS", "Loaded", "is_pictures", "load"]

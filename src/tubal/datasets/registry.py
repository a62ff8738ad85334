"""The image sets of the paper, as data: what each one is, and where the public has it from.

A hash is written here only if somebody who had the file published it, and a remark says who did.
Otherwise it is None, and `fetch` keeps to the file that it saw first. The addresses were collected
from public code that uses them; none could be tried when this list was written.

`content` is the hash of the arrays behind our tables of results (`store.content_hash`), `truth`
that of their labels and `spots` some of their pixels. By these a conversion is recognised that
differs by rounding only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tubal.datasets import convert
from tubal.datasets.convert import Convert


@dataclass(frozen=True)
class Remote:
    """A file of a public source; `digest` is "sha256:...", "md5:..." or None when not known."""

    url: str
    file: str
    digest: str | None = None


@dataclass(frozen=True)
class Source:
    """A place that has a data set, and how its files become images."""

    name: str
    files: tuple[Remote, ...]
    convert: Convert
    pillow: bool = False
    note: str = ""


@dataclass(frozen=True)
class Dataset:
    """One image set.

    Attributes
    ----------
    name, title : str
    shape : (n_samples, height, width)
    classes : int or None
    sources : tuple of Source
        In the order in which `fetch` tries them; all must lead to the same images.
    terms, citation : str
    note : str
        What a reader of results should know.
    content, truth, spots : str
        Hash of the reference arrays, hash of their labels, some of their pixels; empty for variants
        without reference.
    instead : tuple of str
        Variants that can stand in.
    """

    name: str
    title: str
    shape: tuple[int, int, int]
    classes: int | None
    sources: tuple[Source, ...]
    terms: str
    citation: str
    note: str = ""
    content: str = ""
    truth: str = ""
    spots: str = ""
    instead: tuple[str, ...] = ()


def find_dataset(name: str) -> Dataset:
    """Return the entry of a name, or say which names there are."""
    if name not in DATASETS:
        msg = f"unknown data set {name!r}; there are {', '.join(DATASETS)}"
        raise ValueError(msg)
    return DATASETS[name]


def _github(repository: str, commit: str, path: str) -> Remote:
    """Return a file of a repository at a commit, which is itself a hash of the content."""
    url = f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
    return Remote(url, path.rpartition("/")[2])


def _github_archive(repository: str, commit: str) -> Remote:
    url = f"https://codeload.github.com/{repository}/zip/{commit}"
    return Remote(url, f"{repository.rpartition('/')[2]}-{commit[:12]}.zip")


_CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data"
_ESL = "https://hastie.su.domains/ElemStatLearn/datasets"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
_COLUMBIA = "databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip"
_ADAGAE = ("hyzhang98/AdaGAE", "38965140728fc081010291b20f4b28d90b3e0451")

_ORL_TERMS = "Not stated; the readme asks to give credit to Olivetti Research Laboratory."
_ORL_PAPER = (
    "F. Samaria and A. Harter, Parameterisation of a stochastic model for human face "
    "identification, WACV 1994."
)
_COIL_TERMS = "Not stated with the copies."
_COIL_PAPER = (
    "S. A. Nene, S. K. Nayar and H. Murase, Columbia Object Image Library (COIL-20), "
    "CUCS-005-96, 1996."
)
_UMIST_TERMS = "Not stated with the copies."
_UMIST_PAPER = (
    "D. B. Graham and N. M. Allinson, Characterizing virtual eigensignatures for general purpose "
    "face recognition, in: Face Recognition, NATO ASI Series F 163, 1998."
)
_MIR_TERMS = "Creative Commons licences of the photographers, listed on press.liacs.nl/mirflickr."
_MIR_PAPER = "M. J. Huiskes and M. S. Lew, The MIR Flickr retrieval evaluation, MIR 2008."

_orl_mat = partial(convert.from_mat, size=(32, 32))
_coil_mat = partial(convert.from_mat, size=(32, 32), scale=255)
_coil_png = partial(
    convert.from_pictures, pattern=r"obj(?P<label>\d+)__(?P<number>\d+)\.png", size=(32, 32)
)
_att_pgm = partial(
    convert.from_pictures, pattern=r"s(?P<label>\d+)/(?P<number>\d+)\.pgm", size=(112, 92)
)
# female/gotone is not a person but one picture of each of the other women.
_faces94 = partial(
    convert.from_pictures,
    pattern=r"(?P<label>(?:female|male|malestaff)/[^/]+)/[^/]*?(?P<number>\d+)\.jpg",
    size=(25, 22),
    skip=("female/gotone",),
    keep_names=True,
)
_course = partial(
    convert.from_numbered_pictures,
    pattern=r"testimages/images/im(?P<number>\d+)\.jpg",
    size=(32, 32),
    first=20001,
    last=25000,
    count=2000,
)
_mirflickr = partial(
    convert.from_numbered_pictures,
    pattern=r"im(?P<number>\d+)\.jpg",
    size=(32, 32),
    first=1,
    last=25000,
    count=2000,
)

_ENTRIES = (
    Dataset(
        name="orl",
        title="ORL faces, 32 x 32, the tight crop of Deng Cai's ORL_32x32.mat",
        shape=(400, 32, 32),
        classes=40,
        sources=(
            Source(
                "github",
                (
                    _github(
                        "DeyuTsang/SGSSC",
                        "a64d1cb751dc7858269bfe35469b7ac6bc08daba",
                        "ORL_32x32.mat",
                    ),
                ),
                _orl_mat,
                note="The file behind the reference arrays.",
            ),
            Source(
                "github-adagae",
                (_github(*_ADAGAE, "data/ORL.mat"),),
                _orl_mat,
                note="Found pixel-identical when the reference arrays were made.",
            ),
            Source(
                "cai",
                (Remote(f"{_CAI}/ORL/ORL_32x32.mat", "ORL_32x32.mat"),),
                _orl_mat,
                note="The home page that the copies on GitHub come from.",
            ),
        ),
        terms=_ORL_TERMS,
        citation=_ORL_PAPER,
        note="The crop is not known as a formula, so it cannot be made from the original pictures.",
        content="d52011c6dd3d4cece9b74dba3768dd7e25bde9d03638d98b90b45ccbd0e2f4ae",
        truth="1324207281794f67eb87f62724c3dfa2b15573b6828b2c392eea6a0d6575d2c4",
        spots="a975965b4e83b37927b85a6598cbbfc7678d9f601c33b49f716e41817b14b4ab",
        instead=("orl_olivetti", "orl_att"),
    ),
    Dataset(
        name="orl_olivetti",
        title="ORL faces, 64 x 64, Sam Roweis' olivettifaces.mat as scikit-learn downloads it",
        shape=(400, 64, 64),
        classes=40,
        sources=(
            Source(
                "figshare",
                (
                    Remote(
                        "https://ndownloader.figshare.com/files/5976027",
                        "olivettifaces.mat",
                        # sklearn.datasets._olivetti_faces
                        "sha256:b612fb967f2dc77c9c62d3e1266e0c73d5fca46a4b8906c18e454d41af987794",
                    ),
                ),
                convert.from_olivetti,
            ),
        ),
        terms=_ORL_TERMS,
        citation=_ORL_PAPER,
        note="A variant: another crop and size than the 32 x 32 images of the paper.",
    ),
    Dataset(
        name="orl_att",
        title="ORL faces, 112 x 92, the original pictures",
        shape=(400, 112, 92),
        classes=40,
        sources=(
            Source(
                "idiap",
                (
                    Remote(
                        "http://www.idiap.ch/software/bob/data/bob/att_faces.zip",
                        "att_faces.zip",
                        "md5:6efb25cb0d40755e9492b9c012e3348d",  # bob.bio.base
                    ),
                ),
                _att_pgm,
                pillow=True,
            ),
            Source(
                "cambridge",
                (
                    Remote(
                        "https://www.cl.cam.ac.uk/research/dtg/attarchive/pub/data/att_faces.zip",
                        "att_faces.zip",
                    ),
                ),
                _att_pgm,
                pillow=True,
            ),
        ),
        terms=_ORL_TERMS,
        citation=_ORL_PAPER,
        note="A variant: not cropped, and larger than the 32 x 32 images of the paper.",
    ),
    Dataset(
        name="coil20",
        title="COIL-20 objects, 32 x 32, Deng Cai's COIL20.mat",
        shape=(1440, 32, 32),
        classes=20,
        sources=(
            Source(
                "github",
                (
                    _github(
                        "ycwang-libra/LpCNMF_github",
                        "63eeda70bd72493a5f6174b6d6a3bdd9cee25393",
                        "datasets/COIL20.mat",
                    ),
                ),
                _coil_mat,
                note="The file behind the reference arrays.",
            ),
            Source(
                "github-faces",
                (
                    _github(
                        "yuzhounh/Face-databases",
                        "75d3e1df261b9810cc4ce2ef8b80b696658a02d6",
                        "others/COIL20.mat",
                    ),
                ),
                _coil_mat,
                note="Found identical when the reference arrays were made.",
            ),
            Source(
                "cai",
                (Remote(f"{_CAI}/COIL20/COIL20.mat", "COIL20.mat"),),
                _coil_mat,
                note="The home page that the copies on GitHub come from.",
            ),
        ),
        terms=_COIL_TERMS,
        citation=_COIL_PAPER,
        note="The file has fractions of grey levels, which were rounded.",
        content="69f0af8cc494b6e2158d3b30d825645458430d4e0edf2465cd054a7f71bbd8ae",
        truth="4ee888aa3966d5cc49056f1c9c005f33bd62f60f3250ee7004fd16307f3f43d5",
        spots="0500eea5d8fa8036000000a1c35f2c004800230e009100221bb6ea8267000600",
        instead=("coil20_columbia",),
    ),
    Dataset(
        name="coil20_columbia",
        title="COIL-20 objects, the processed pictures of the home page reduced to 32 x 32",
        shape=(1440, 32, 32),
        classes=20,
        sources=(
            Source(
                "columbia",
                (Remote(f"https://www.cs.columbia.edu/CAVE/{_COLUMBIA}", "coil-20-proc.zip"),),
                _coil_png,
                pillow=True,
            ),
            Source(
                "cave",
                (Remote(f"https://cave.cs.columbia.edu/old/{_COLUMBIA}", "coil-20-proc.zip"),),
                _coil_png,
                pillow=True,
            ),
        ),
        terms=_COIL_TERMS,
        citation=_COIL_PAPER,
        note="A variant: the same pictures as coil20 with another reduction from 128 x 128.",
    ),
    Dataset(
        name="umist",
        title="UMIST (Sheffield) faces, 56 x 46, 163 of 575 reconstructed",
        shape=(575, 56, 46),
        classes=20,
        sources=(),
        terms=_UMIST_TERMS,
        citation=_UMIST_PAPER,
        note=(
            "163 images (`exact` tells which) were reconstructed by regression from small copies, "
            "about 2.5 grey levels off on images where this can be measured."
        ),
        content="e3a536690fb03895b314b4374c94cc2bf2dd7d707ab125dfd73577ff5b7bc8e8",
        truth="d4647a5982d7d52d5e5beff69cec2d4aadf99ba8f7bc280348696ddc68c1b633",
        spots="2045a736705a93795ba218956753aa229f9c6487143b6c5b2521538d599c2a25",
        instead=("umist_cropped", "umist_28x23", "umist_32x32"),
    ),
    Dataset(
        name="umist_cropped",
        title="UMIST (Sheffield) faces, 56 x 46 from the 112 x 92 of umist_cropped.mat",
        shape=(575, 56, 46),
        classes=20,
        sources=(
            Source(
                "roweis",
                (
                    Remote(
                        "https://cs.nyu.edu/~roweis/data/umist_cropped.mat",
                        "umist_cropped.mat",
                    ),
                ),
                partial(convert.from_cells, size=(56, 46)),
                pillow=True,
            ),
        ),
        terms=_UMIST_TERMS,
        citation=_UMIST_PAPER,
        note=(
            "What umist would be with nothing reconstructed: the home page is "
            "www.visioneng.org.uk/datasets, this copy is Sam Roweis'."
        ),
    ),
    Dataset(
        name="umist_28x23",
        title="UMIST (Sheffield) faces, 28 x 23",
        shape=(575, 28, 23),
        classes=20,
        sources=(
            Source(
                "github",
                (
                    _github(
                        "JinaLeejnl/TSNMF",
                        "bebb0155cc3c0aa9d1dd91e09215c57cfff3ce96",
                        "data/UMIST.mat",
                    ),
                ),
                partial(convert.from_mat, size=(28, 23)),
                note="The file behind the reference arrays.",
            ),
        ),
        terms=_UMIST_TERMS,
        citation=_UMIST_PAPER,
        note="A smaller size than the 56 x 46 of the paper; nothing reconstructed.",
        content="e1b9c3eaedb9a4ff6e273f01feb50671b1b19b0213360d7b11f84b88ce35e6c6",
        truth="d4647a5982d7d52d5e5beff69cec2d4aadf99ba8f7bc280348696ddc68c1b633",
        spots="3353178587713c1b5baf2f741e86886e56206a4a6f79267774555f7661463377",
    ),
    Dataset(
        name="umist_32x32",
        title="UMIST (Sheffield) faces, 32 x 32",
        shape=(575, 32, 32),
        classes=20,
        sources=(
            Source(
                "github",
                (_github(*_ADAGAE, "data/UMIST.mat"),),
                partial(convert.from_mat, size=(32, 32)),
                note="The file behind the reference arrays.",
            ),
        ),
        terms=_UMIST_TERMS,
        citation=_UMIST_PAPER,
        note="Another size than the 56 x 46 of the paper; nothing reconstructed.",
        content="ecec46d92e77e7239c7932f2d39d72dc5f7a3f660f0e35e805e24fbee4705372",
        truth="d4647a5982d7d52d5e5beff69cec2d4aadf99ba8f7bc280348696ddc68c1b633",
        spots="735365b66d693576284412202f65a30c865536468b12be19287f916c24486dab",
    ),
    Dataset(
        name="frdue",
        title="FRDUE: faces94 of the University of Essex, 25 x 22",
        shape=(3040, 25, 22),
        classes=152,
        sources=(
            Source(
                "spacek",
                (Remote("https://cmp.felk.cvut.cz/~spacelib/faces/faces94.zip", "faces94.zip"),),
                _faces94,
                pillow=True,
                note="The home page of the author.",
            ),
            Source(
                "essex",
                (Remote("http://cswww.essex.ac.uk/mv/allfaces/faces94.zip", "faces94.zip"),),
                _faces94,
                pillow=True,
                note="The old home page.",
            ),
            Source(
                "github",
                (
                    _github_archive(
                        "ArianaVillegas/FibonacciHeap", "b493aab138bc6bb797b22db5fd33271e61b1dedb"
                    ),
                ),
                _faces94,
                pillow=True,
                note="The pictures behind the reference arrays.",
            ),
        ),
        terms="Not stated with the copies.",
        citation="L. Spacek, Collection of facial images: faces94, University of Essex.",
        note=(
            "152 people, 20 pictures each; female/gotone, which is not a person, is left out. How "
            "the paper went from colour to 25 x 22 is not known."
        ),
        content="8b6dc22e67ff8a3e052a47e4ca4545745da3d803c5b1c0dbc695867af752876b",
        truth="bdf876c0875b69fbf791935281d2f3e8d84f65e701cf2c49857122c5e26aa351",
        spots="52c65a5353870ea08b492a6b52ad434e1c366c0c908a281d551d3863971a7e1f",
    ),
    Dataset(
        name="usps",
        title="USPS digits, 16 x 16, 7291 for training and then 2007 for testing",
        shape=(9298, 16, 16),
        classes=10,
        sources=(
            Source(
                "libsvm",
                (
                    # torchvision.datasets.usps
                    Remote(
                        f"{_LIBSVM}/usps.bz2", "usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197"
                    ),
                    Remote(
                        f"{_LIBSVM}/usps.t.bz2",
                        "usps.t.bz2",
                        "md5:8ea070ee2aca1ac39742fdd1ef5ed118",
                    ),
                ),
                convert.from_libsvm,
            ),
            Source(
                "esl",
                (
                    Remote(f"{_ESL}/zip.train.gz", "zip.train.gz"),
                    Remote(f"{_ESL}/zip.test.gz", "zip.test.gz"),
                ),
                convert.from_zip_code_text,
                note="The Elements of Statistical Learning.",
            ),
            Source(
                "openml",
                (
                    Remote(
                        "https://api.openml.org/data/v1/download/18805612/USPS.arff", "USPS.arff"
                    ),
                ),
                convert.from_arff,
                note="Data set 41082.",
            ),
        ),
        terms="Not stated with the copies.",
        citation=(
            "J. J. Hull, A database for handwritten text recognition research, PAMI 16(5), 1994."
        ),
        note="Values in steps of 1/2000 were rounded to grey levels.",
        content="2919ac76ea6b159187b49c570f4c1b202b7987f45d23cddf90d9d5052fafd971",
        truth="f7641318516650150092f017535dc8d2e58ba6e6c34d52f5755e5b1784c98273",
        spots="ff190000001d52ff0000000000000000ff4beafffd021400ef0000bbb9090000",
    ),
    Dataset(
        name="mirflickr",
        title="MIRFLICKR-25k photographs, 32 x 32, 2000 of a course's copy",
        shape=(2000, 32, 32),
        classes=None,
        sources=(
            Source(
                "github",
                (
                    _github_archive(
                        "VilleAR/IDL_Image_Classification_Project",
                        "628aecfa19eaea384b61d8b724be0c9d0577655f",
                    ),
                ),
                _course,
                pillow=True,
                note="The pictures behind the reference arrays.",
            ),
        ),
        terms=_MIR_TERMS,
        citation=_MIR_PAPER,
        note=(
            "From 128 x 128 copies of a course at the University of Helsinki, cut to squares; that "
            "they are MIRFLICKR-25k is inferred. `ids` are the numbers of the course."
        ),
        content="1c148b2b2f2f1c86fcb39fc905e0d813904f2604293977fa027862b95c1e2d90",
        spots="8a88364f36b86e724949002259ab79a3755e76733e1376688c1a2e5a95528bee",
        instead=("mirflickr_liacs",),
    ),
    Dataset(
        name="mirflickr_liacs",
        title="MIRFLICKR-25k photographs, 32 x 32, 2000 of the home page's",
        shape=(2000, 32, 32),
        classes=None,
        sources=(
            Source(
                "liacs",
                (
                    Remote(
                        "https://press.liacs.nl/mirflickr/mirflickr25k.v3b/mirflickr25k.zip",
                        "mirflickr25k.zip",
                        "md5:a23d0a8564ee84cda5622a6c2f947785",  # the download page
                    ),
                ),
                _mirflickr,
                pillow=True,
                note="3.1 GB.",
            ),
        ),
        terms=_MIR_TERMS,
        citation=_MIR_PAPER,
        note="A variant of mirflickr: another sample, whole pictures squeezed to squares.",
    ),
)

DATASETS = {entry.name: entry for entry in _ENTRIES}

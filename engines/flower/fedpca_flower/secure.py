"""Secure sums: the server learns the weighted sum of a round's uploads and no single one.

Numbers become integers modulo 2^64 (fixed point); each upload carries one mask shared with every
other participant, which cancels in the sum, and one of its client's own. Of either seed every
participant gets a share (Bonawitz et al., "Practical Secure Aggregation", 2017, protocol 4), so
more than two thirds of them open a sum without those who fall silent: by shares of the own seed of
who has arrived, and of the pairs' key of who has not. Key agreement X25519, key derivation
HKDF-SHA256, masks ChaCha20, boxes ChaCha20-Poly1305, all of the package ``cryptography``; shares
are Shamir's of ``pycryptodome``. Flower's own mask generator is not used: it reduces every key to
32 bits.

Against whom: the server, whatever lists of arrivals it tells, together with fewer than a third of
the participants. A share is given once, so both seeds of one client would take more answers than
there are (`threshold`). It passes the clients' public keys on, so a server that forges keys at the
beginning can open uploads; keys of a round come inside the boxes. A sum is not private: sums over
sets that differ by one client differ by that client's upload, which noise at the source covers and
masks do not.
"""

import hashlib
import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from Crypto.Protocol.SecretSharing import Shamir
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedpca_core.arrays import AnyArray, Array, Arrays
from fedpca_core.errors import require

#: Messages as integers modulo 2^64, one after the other: (numbers,) uint64, whose sums wrap around.
Words = AnyArray
#: What opens an arrived client's upload: its own seed and those it shares with the lost.
Opening = tuple[str, Mapping[int, str]]


@dataclass(frozen=True)
class FixedPoint:
    """Numbers as integers modulo 2^64.

    ``bound``: No entry of a sum may exceed it in size. Resolution follows: ``2^ceil(log2 bound) /
        2^62``.
    ``clients``: Most clients in a sum; each may contribute up to ``bound / clients``.
    """

    bound: float
    clients: int

    @property
    def scale(self) -> float:
        """Units in one."""
        return float(2.0 ** (62 - np.ceil(np.log2(self.bound))))

    def words(self, messages: Arrays) -> Words:
        """The messages as words.

        Raises InvalidInput: entries that could overflow the sum; nothing is clipped.
        """
        limit = self.bound / self.clients
        for name, array in messages.items():
            largest = float(np.abs(array).max(initial=0.0))
            require(
                np.isfinite(largest) and largest <= limit,
                f"An entry of “{name}” is {largest:.3g} in size, and secure sums of {self.clients} "
                f"clients bounded by {self.bound:g} hold {limit:.3g} of each; raise the bound "
                "(secure-bound), or scale the data.",
            )
        flat = np.concatenate([np.zeros(0), *(array.ravel() for array in messages.values())])
        return np.rint(flat * self.scale).astype(np.int64).view(np.uint64)

    def numbers(self, words: Words, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
        """The way back, to messages of these names and shapes."""
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
        parts = np.split(words.view(np.int64) / self.scale, ends)
        return {
            name: part.reshape(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=False)
        }


def new_seed() -> str:
    """16 bytes that nobody else knows, as text."""
    return os.urandom(16).hex()


def key(seed: str) -> tuple[str, str]:
    """The private and the public key that belong to a seed, as text."""
    private = X25519PrivateKey.from_private_bytes(_derived(bytes.fromhex(seed), "key"))
    return private.private_bytes_raw().hex(), private.public_key().public_bytes_raw().hex()


def is_key(public: str) -> bool:
    """Whether secrets can be agreed with a public key; some points give everybody the same."""
    try:
        X25519PrivateKey.generate().exchange(
            X25519PublicKey.from_public_bytes(bytes.fromhex(public))
        )
    except ValueError:
        return False
    return True


def question(occasion: str, weights: Sequence[float], told: Mapping[str, Any], down: Arrays) -> str:
    """What was asked of all participants on one occasion, by its SHA-256.

    A server that asks or weighs some of them otherwise could read the others' part off the sum.

    ``weights``: Of all clients of the run.
    """
    plain = [occasion, weights, *(told[name] for name in ("round", "local_steps", "extra"))]
    asked = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for name, array in sorted(down.items()):
        asked.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return asked.hexdigest()


def pair_seeds(private: str, keys: Mapping[int, str], client: int, question: str) -> dict[int, str]:
    """The seed that a client shares with each other participant for one question, as text."""
    return {
        other: _agreed(private, public, question).hex()
        for other, public in keys.items()
        if other != client
    }


def mask(seed: str, size: int) -> Words:
    """So many words from a seed."""
    stream = Cipher(ChaCha20(_derived(bytes.fromhex(seed), "mask"), bytes(16)), mode=None)
    words = stream.encryptor().update(bytes(8 * size))
    return np.frombuffer(words, dtype="<u8").astype(np.uint64)


def pair_masks(client: int, seeds: Mapping[int, str], size: int) -> Words:
    """What a client adds for others; with what each of them adds for it, this is zero."""
    total: Words = np.zeros(size, dtype=np.uint64)
    for other, seed in seeds.items():
        total = total + mask(seed, size) if client < other else total - mask(seed, size)
    return total


def masked(words: Words, client: int, own: str, pairs: Mapping[int, str]) -> Words:
    """The words under all masks."""
    return words + mask(own, words.size) + pair_masks(client, pairs, words.size)


def open_sum(uploads: Mapping[int, Words], openings: Mapping[int, Opening]) -> Words:
    """The sum of the words below the masks, from the uploads and openings of the same clients."""
    require(
        set(uploads) == set(openings) and bool(uploads),
        "A secure sum is opened by exactly those who contributed to it.",
    )
    size = next(iter(uploads.values())).size
    total: Words = np.zeros(size, dtype=np.uint64)
    for client, words in uploads.items():
        own, lost = openings[client]
        total = total + words - mask(own, size) - pair_masks(client, lost, size)
    return total


# ---------------------------------------------------------------------- shares of the seeds
def threshold(clients: int) -> int:
    """How many of the clients that hold shares open a sum.

    With t of n, both seeds of one client take 2t shares. Every client gives one of the two, and c
    that collude with the server both: n + c in all, which is less as long as c < n/3.
    """
    return 2 * clients // 3 + 1


def mark(secret: str) -> str:
    """SHA-256 of a seed or share, by which it is known when it is told."""
    return hashlib.sha256(bytes.fromhex(secret)).hexdigest()


def dealt(
    own: str, pairs: str, client: int, private: str, keys: Mapping[int, str], occasion: str
) -> dict[str, Any]:
    """What a client tells of its two seeds before it uploads: nothing that opens either.

    ``keys``: Every participant's public key of the whole run, the client's own included.

    Returns dict: ``public``: the pairs' key; ``seal``: the mark of the own seed; and for each
        participant a box that only it can open (``boxes``) and the marks of the two shares in it
        (``marks``).
    """
    holders, public = sorted(keys), key(pairs)[1]
    shares = [
        [share.hex() for _, share in Shamir.split(threshold(len(keys)), len(keys), seed)]
        for seed in (bytes.fromhex(own), bytes.fromhex(pairs))
    ]
    boxes, marks = {}, {}
    for holder, mine, ours in zip(holders, *shares, strict=True):
        nonce, inside = os.urandom(12), bytes.fromhex(mine + ours + public)
        cipher = ChaCha20Poly1305(_agreed(private, keys[holder], "shares"))
        label = f"{occasion} {client} {holder}".encode()
        boxes[holder] = (nonce + cipher.encrypt(nonce, inside, label)).hex()
        marks[holder] = mark(mine) + mark(ours)
    return {"public": public, "seal": mark(own), "boxes": boxes, "marks": marks}


def held(
    told: Mapping[str, str], dealer: int, client: int, private: str, key: str, occasion: str
) -> tuple[str, str] | None:
    """The shares in a dealer's box, of its own seed and of its pairs'.

    None where the box cannot be opened, or holds other shares or another key than everybody was
    told of (``public``, ``marks``).
    """
    box, cipher = bytes.fromhex(told["box"]), ChaCha20Poly1305(_agreed(private, key, "shares"))
    try:
        inside = cipher.decrypt(box[:12], box[12:], f"{occasion} {dealer} {client}".encode()).hex()
    except InvalidTag:
        return None
    mine, ours, public = inside[:32], inside[32:64], inside[64:]
    as_told = public == told["public"] and mark(mine) + mark(ours) == told["marks"]
    return (mine, ours) if as_told else None


def joined(shares: Mapping[int, str], holders: Collection[int]) -> str:
    """The seed of which these clients hold shares, from the `threshold` of them or more."""
    places = {holder: place for place, holder in enumerate(sorted(holders), start=1)}
    enough = list(shares.items())[: threshold(len(holders))]
    seed: bytes = Shamir.combine([(places[one], bytes.fromhex(share)) for one, share in enough])
    return seed.hex()


def _agreed(private: str, public: str, purpose: str) -> bytes:
    own = X25519PrivateKey.from_private_bytes(bytes.fromhex(private))
    shared = own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    return _derived(shared, purpose)


def _derived(secret: bytes, purpose: str) -> bytes:
    return HKDF(hashes.SHA256(), length=32, salt=None, info=purpose.encode()).derive(secret)

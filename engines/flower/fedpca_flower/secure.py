"""Secure sums: the server learns the weighted sum of a round's uploads and no single one.

Numbers become integers modulo 2^64 (fixed point); each upload carries one mask shared with every
other participant, which cancels in the sum, and one of its client's own, which the client tells
only for the set of clients that has arrived (Bonawitz et al., "Practical Secure Aggregation", 2017,
protocol 4 without secret sharing: who falls silent between upload and opening makes the server ask
for the round again). Key agreement X25519, key derivation HKDF-SHA256, masks ChaCha20, all of the
package ``cryptography``. Flower's own mask generator is not used: it reduces every key to 32 bits.

Against whom: a server that follows the protocol and looks at everything it gets, and other clients
that do the same, as long as two participants do not collude with it. It passes the clients' public
keys on, so a server that forges keys, or tells clients different sets of arrivals, can open
uploads. A sum is not private: sums over sets that differ by one client differ by that client's
upload, which noise at the source covers and masks do not.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedpca_core.arrays import AnyArray, Array, Arrays
from fedpca_core.errors import require

#: Messages as integers modulo 2^64, one after the other: (numbers,) uint64, whose sums wrap around.
Words = AnyArray
#: What an arrived client tells the server: its own seed and those it shares with the lost.
Opening = tuple[str, Mapping[int, str]]


@dataclass(frozen=True)
class FixedPoint:
    """Numbers as integers modulo 2^64.

    Attributes
    ----------
    bound : float
        No entry of a sum may exceed it in size. Resolution follows: ``2^ceil(log2 bound) / 2^62``.
    clients : int
        Most clients in a sum; each may contribute up to ``bound / clients``.
    """

    bound: float
    clients: int

    @property
    def scale(self) -> float:
        """Units in one."""
        return float(2.0 ** (62 - np.ceil(np.log2(self.bound))))

    def words(self, messages: Arrays) -> Words:
        """The messages as words.

        Raises
        ------
        InvalidInput
            Entries that could overflow the sum; nothing is clipped.
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


def new_key() -> tuple[str, str]:
    """A private and a public key, as text."""
    private = X25519PrivateKey.generate()
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


def pair_seeds(private: str, keys: Mapping[int, str], client: int, occasion: str) -> dict[int, str]:
    """The seed that a client shares with each other participant on one occasion, as text."""
    own = X25519PrivateKey.from_private_bytes(bytes.fromhex(private))
    seeds = {}
    for other, key in keys.items():
        if other != client:
            shared = own.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(key)))
            derive = HKDF(hashes.SHA256(), length=32, salt=None, info=occasion.encode())
            seeds[other] = derive.derive(shared).hex()
    return seeds


def own_seed() -> str:
    """A seed that nobody shares."""
    return os.urandom(32).hex()


def mask(seed: str, size: int) -> Words:
    """So many words from a seed."""
    stream = Cipher(ChaCha20(bytes.fromhex(seed), bytes(16)), mode=None).encryptor()
    return np.frombuffer(stream.update(bytes(8 * size)), dtype="<u8").astype(np.uint64)


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

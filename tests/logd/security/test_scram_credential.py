"""The text of a stored SCRAM credential."""

import pytest

from logd.security.scram_credential import BadCredential, ScramCredential, ScramMechanism


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_text_round_trips(mechanism):
    credential = ScramCredential.of_password(mechanism, "pencil")
    assert ScramCredential.from_text(credential.to_text()) == credential
    assert 20 <= len(credential.salt) <= 26
    assert set(credential.salt) <= set(b"0123456789abcdefghijklmnopqrstuvwxyz")


def test_representation_shows_no_key():
    credential = ScramCredential.of_password(ScramMechanism.SHA_256, "pencil", salt=b"0123")
    assert repr(credential) == "ScramCredential(iterations=4096)"


def test_credentials_of_one_password_differ():
    one, other = (ScramCredential.of_password(ScramMechanism.SHA_256, "pencil") for _ in range(2))
    assert one != other


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=AA==",
        "salt=AA==,stored_key=AA==,server_key=AA==,iterations=many",
        "salt=?,stored_key=AA==,server_key=AA==,iterations=4096",
        "salt=AA==,stored_key=AA==,server_key=AA==,iterations=4096,x=1",
    ],
)
def test_bad_texts(text):
    with pytest.raises(BadCredential) as error:
        ScramCredential.from_text(text)
    assert "AA" not in str(error.value)

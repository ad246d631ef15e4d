#include "gossip/asio/identity.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::net {
namespace {

constexpr std::size_t key_file_bytes_max = 4096;

using KeyContext = std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

std::shared_ptr<EVP_PKEY> own(EVP_PKEY* key) {
  return {key, &EVP_PKEY_free};
}

Error system_error(const std::string& what, int number) {
  return {Errc::io, str(what, ": ", std::strerror(number))};
}

std::shared_ptr<EVP_PKEY> generate_key() {
  EVP_PKEY* key = nullptr;
  KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr), &EVP_PKEY_CTX_free);
  RUMOR_CHECK(context && EVP_PKEY_keygen_init(context.get()) == 1);
  RUMOR_CHECK(EVP_PKEY_keygen(context.get(), &key) == 1);
  return own(key);
}

// The same key always gives the same certificate: fixed serial, name and dates, and Ed25519 draws no chance.
std::shared_ptr<X509> make_certificate(EVP_PKEY* key) {
  std::shared_ptr<X509> certificate(X509_new(), &X509_free);
  RUMOR_CHECK(certificate && X509_set_version(certificate.get(), 2) == 1);
  RUMOR_CHECK(ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) == 1);
  RUMOR_CHECK(ASN1_TIME_set_string(X509_getm_notBefore(certificate.get()), "19700101000000Z") == 1);
  RUMOR_CHECK(ASN1_TIME_set_string(X509_getm_notAfter(certificate.get()), "99991231235959Z") == 1);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>("rumor");
  RUMOR_CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1);
  RUMOR_CHECK(X509_set_issuer_name(certificate.get(), name) == 1);
  RUMOR_CHECK(X509_set_pubkey(certificate.get(), key) == 1);
  RUMOR_CHECK(X509_sign(certificate.get(), key, nullptr) > 0);
  return certificate;
}

std::string key_to_pem(EVP_PKEY* key) {
  Bio bio(BIO_new(BIO_s_secmem()), &BIO_free_all);
  RUMOR_CHECK(bio && PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

// A password prompt on the terminal would hang a daemon; an encrypted key is simply not ours.
int no_password(char*, int, int, void*) {
  return 0;
}

std::shared_ptr<EVP_PKEY> key_from_pem(const std::string& pem) {
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free_all);
  RUMOR_CHECK(bio != nullptr);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_password, nullptr);
  if (key != nullptr && EVP_PKEY_base_id(key) == EVP_PKEY_ED25519) return own(key);
  EVP_PKEY_free(key);
  return nullptr;
}

// Errc::not_found when there is no file.
Result<std::string> read_key_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const Error error = system_error(str("cannot read key file ", path), errno);
    return errno == ENOENT ? Error{Errc::not_found, error.text} : error;
  }
  struct stat status {};
  std::string pem(key_file_bytes_max, '\0');
  const bool known = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t got = known ? ::read(file, pem.data(), pem.size()) : -1;
  ::close(file);
  if (got < 0) return Error{Errc::io, str("cannot read key file ", path, ": it is not a readable file")};
  if ((status.st_mode & 077) != 0)
    return Error{Errc::io, str("key file ", path, " can be read by others; run: chmod 600 ", path)};
  pem.resize(static_cast<std::size_t>(got));
  return pem;
}

bool write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return ::fsync(file) == 0;
}

// Creates `path` with `text`, whole or not at all; an existing file stays (and is success: the caller reads
// it back).
Result<void> create_key_file(const std::string& path, const std::string& text) {
  std::array<std::uint8_t, 8> random{};
  RUMOR_CHECK(RAND_bytes(random.data(), static_cast<int>(random.size())) == 1);
  const std::string temporary = str(path, ".", to_hex(random), ".tmp");
  const std::string failed = str("cannot create key file ", path);
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return system_error(failed, errno);
  const bool written = write_all(file, text);
  const int write_error = errno;
  ::close(file);
  if (!written) {
    ::unlink(temporary.c_str());
    return system_error(failed, write_error);
  }
  // link() refuses to replace a file, rename() does not; file systems without hard links get the latter.
  const bool linked = ::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const bool placed = linked || ::rename(temporary.c_str(), path.c_str()) == 0;
  const int place_error = errno;
  ::unlink(temporary.c_str());
  if (!placed) return system_error(failed, place_error);

  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

}  // namespace

Identity::Identity(std::shared_ptr<evp_pkey_st> key)
    : key_(std::move(key)), certificate_(make_certificate(key_.get())), signing_(key_) {}

Identity Identity::ephemeral() {
  return Identity(generate_key());
}

Result<Identity> Identity::load_or_create(const std::string& path) {
  Result<Identity> found = load(path);
  if (found.ok() || found.error().code != Errc::not_found) return found;
  if (Result<void> made = create_key_file(path, key_to_pem(generate_key().get())); !made) return made.error();
  return load(path);
}

Result<Identity> Identity::load(const std::string& path) {
  const Result<std::string> pem = read_key_file(path);
  if (!pem) return pem.error();
  std::shared_ptr<EVP_PKEY> key = key_from_pem(*pem);
  if (!key) {
    return Error{Errc::corrupt, str("key file ", path,
                                    " does not hold an Ed25519 private key; move it away to "
                                    "become a new peer, or put the right one in its place")};
  }
  return Identity(std::move(key));
}

}  // namespace rumor::net

const UNTRUSTED =
  'its certificate was not issued by a trusted authority; if you run that authority, name a file with its certificate in NODE_EXTRA_CA_CERTS';

const WORDS: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused, so nothing listens there',
  ECONNRESET: 'the connection was closed',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  ENOTFOUND: 'there is no host of that name',
  EAI_AGAIN: 'the name of the host could not be looked up',
  ETIMEDOUT: 'there was no answer in time',
  EACCES: 'the user of this process may not use it',
  ENOENT: 'there is no such socket',
  ENOTDIR: 'there is no such socket',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_HAS_EXPIRED: 'its certificate has expired, or the clock of this machine is wrong',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet, or the clock of this machine is wrong',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the server there does not speak TLS',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'the server there does not speak TLS',
};

/** Says why a server could not be reached. A failure without a code of the operating system keeps its own message. */
export function connectionFailure(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const text = /timeout|timed out/i.test(message) ? WORDS.ETIMEDOUT : message;
  return WORDS[code ?? ''] ?? text ?? String(error);
}

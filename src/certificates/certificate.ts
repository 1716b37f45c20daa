import { createHash, createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto';
import { CompactSign, calculateJwkThumbprint, decodeProtectedHeader, exportJWK, type JWK } from 'jose';
import type { EncryptionKey, Secret } from '../core/secret.js';
import { registerSecret } from '../observability/secret-registry.js';
import { Statement } from './statement.js';

// A certificate is a compact JWS (RFC 7515): header, statement and signature in base64url, separated by dots. The Ed25519 signature (RFC 8037)
// covers the first two parts.

/** The type in the header. Nothing else signed with the key can pass for a certificate. */
export const TYPE = 'muster-certificate+json';
/** The type of a signed manifest of an export, which has the same form. */
export const MANIFEST_TYPE = 'muster-manifest+json';
export const ALGORITHM = 'EdDSA';

/** The prefix of an Ed25519 key in PKCS#8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** A public key in its published form. */
export interface PublicKey extends JWK {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
  readonly kid: string;
  readonly alg: typeof ALGORITHM;
  readonly use: 'sig';
}

export function publicKey({ kid, x }: { readonly kid: string; readonly x: string }): PublicKey {
  return { kty: 'OKP', crv: 'Ed25519', x, kid, alg: ALGORITHM, use: 'sig' };
}

export interface Signer {
  readonly publicKey: PublicKey;
  sign(statement: Statement): Promise<string>;
  /** Signs the exact text of the manifest. */
  signManifest(manifest: string): Promise<string>;
}

/**
 * A signer with the configured key, base64 of 32 bytes, or with a key derived from the first of `encryptionKeys`, which all workers
 * share.
 */
export function signerOf(set: Secret | undefined, [current]: readonly EncryptionKey[]): Promise<Signer> {
  const derived = () => hkdfSync('sha256', Buffer.from(current!.key.reveal(), 'base64'), '', 'muster certificates', 32);
  const seed = set ? Buffer.from(set.reveal(), 'base64') : Buffer.from(derived());
  registerSecret(seed.toString('base64'), { lasting: true });
  return signerOfSeed(seed);
}

/** `seed`: 32 bytes. */
export async function signerOfSeed(seed: Buffer): Promise<Signer> {
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
  const { x } = await exportJWK(createPublicKey(key));
  const kid = await calculateJwkThumbprint({ kty: 'OKP', crv: 'Ed25519', x: x! });
  const signText = (typ: string, text: string) =>
    new CompactSign(Buffer.from(text)).setProtectedHeader({ alg: ALGORITHM, kid, typ }).sign(key);
  return {
    publicKey: publicKey({ kid, x: x! }),
    sign: (statement) => signText(TYPE, JSON.stringify(statement)),
    signManifest: (manifest) => signText(MANIFEST_TYPE, manifest),
  };
}

/** The digest that the next certificate of the list contains. */
export function digestOf(jws: string): string {
  return createHash('sha256').update(jws).digest('hex');
}

/** Reads a certificate of our own table, and the id of its key. Does not check the signature. */
export function readCertificate(jws: string): { readonly kid: string; readonly statement: Statement } {
  const { kid } = decodeProtectedHeader(jws);
  const statement = Statement.parse(JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString()));
  return { kid: kid ?? '', statement };
}

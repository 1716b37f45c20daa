import { createHmac, timingSafeEqual } from 'node:crypto';

function mac(key: string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

export function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** `text` and its signature, joined by a point. */
export function sign(key: string, text: string): string {
  return `${text}.${mac(key, text).toString('base64url')}`;
}

/** The JSON value in the last part of a signed text, or undefined when the signature is not ours. */
export function readSigned(key: string, signed: string): unknown {
  const end = signed.lastIndexOf('.');
  if (end < 0) return undefined;
  const text = signed.slice(0, end);
  const theirs = Buffer.from(signed.slice(end + 1), 'base64url');
  const ours = mac(key, text);
  if (theirs.length !== ours.length || !timingSafeEqual(theirs, ours)) return undefined;
  return JSON.parse(Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url').toString('utf8'));
}

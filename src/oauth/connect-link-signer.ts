import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Keyring } from './cipher.js';

/** The contents of a state: which flow it belongs to. */
export interface FlowState {
  readonly linkId: string;
  /** The link's epoch when the flow was started. */
  readonly epoch: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

const MAC_BYTES = 32;
const ID_BYTES = 16;
const EPOCH_BYTES = 4;
const TIME_BYTES = 6;
const FIELDS_END = MAC_BYTES + ID_BYTES + EPOCH_BYTES + TIME_BYTES;
/** Key ids are at most 32 characters long. */
const LONGEST_STATE = 200;

/**
 * Makes the tokens of connect links and the states of authorization flows, with keys that are derived from the current
 * encryption key. A token follows from its link's id, so that a link can be shown again although only the token's hash is kept.
 * A state is signed and stored nowhere, so that opening a link writes nothing.
 */
export class ConnectLinkSigner {
  readonly #keyring: Keyring;

  constructor(keyring: Keyring) {
    this.#keyring = keyring;
  }

  /** 43 characters that nobody can guess. A new current key makes a new token. */
  token(linkId: string): string {
    return mac(this.#key('token', this.#keyring.currentId), linkId).toString('base64url');
  }

  /** The same id for the same subject as long as the key is the current one. */
  linkId(subject: string): string {
    return uuid(mac(this.#key('link id', this.#keyring.currentId), subject));
  }

  /** base64url of the MAC, the fields, and the id of the key. */
  state({ linkId, epoch, startedAt }: FlowState): string {
    const fields = Buffer.alloc(ID_BYTES + EPOCH_BYTES + TIME_BYTES);
    fields.write(linkId.replaceAll('-', ''), 'hex');
    fields.writeUInt32BE(epoch, ID_BYTES);
    fields.writeUIntBE(startedAt, ID_BYTES + EPOCH_BYTES, TIME_BYTES);
    const { currentId } = this.#keyring;
    const signed = Buffer.concat([fields, Buffer.from(currentId)]);
    return Buffer.concat([mac(this.#key('state', currentId), signed), signed]).toString('base64url');
  }

  /** Undefined for a text that no key of the ring has signed. */
  readState(text: string): FlowState | undefined {
    if (text.length > LONGEST_STATE) return undefined;
    const bytes = Buffer.from(text, 'base64url');
    const keyId = bytes.subarray(FIELDS_END).toString();
    // Node decodes base64url leniently, so that a state has many spellings; only the canonical one is taken.
    if (bytes.toString('base64url') !== text || keyId === '' || !this.#keyring.get(keyId)) return undefined;
    const [given, signed] = [bytes.subarray(0, MAC_BYTES), bytes.subarray(MAC_BYTES)];
    if (!timingSafeEqual(given, mac(this.#key('state', keyId), signed))) return undefined;
    return {
      linkId: uuid(signed),
      epoch: signed.readUInt32BE(ID_BYTES),
      startedAt: signed.readUIntBE(ID_BYTES + EPOCH_BYTES, TIME_BYTES),
    };
  }

  #key(purpose: 'token' | 'link id' | 'state', keyId: string): Buffer {
    const key = this.#keyring.get(keyId) as Buffer;
    return Buffer.from(hkdfSync('sha256', key, '', `muster connect link ${purpose}`, 32));
  }
}

function mac(key: Buffer, text: string | Buffer): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** The first sixteen bytes, written as a UUID. */
function uuid(bytes: Buffer): string {
  return bytes.toString('hex', 0, ID_BYTES).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

import { readFileSync } from 'node:fs';
import { BUILT_IN_TEXTS, type ConnectTexts, readConnectTexts } from './connect-texts.js';

/** Who asks customers for access, as it is set. The two paths are of files that `readOperator` reads. */
export interface OperatorSettings {
  readonly name?: string;
  /** A mail address, or the address of a page. */
  readonly contact?: string;
  /** Where a person goes on after the company was connected. */
  readonly returnUrl?: URL;
  readonly logoPath?: string;
  readonly textsFolder?: string;
}

/** Who asks, as the pages of the authorization flow show it. */
export interface Operator extends Pick<OperatorSettings, 'name' | 'contact' | 'returnUrl'> {
  readonly logo?: Logo | undefined;
  readonly texts: ConnectTexts;
}

/** An image that pages contain as a whole: a browser runs no script of such an image, and asks no host for anything in it. */
export interface Logo {
  readonly type: 'image/png' | 'image/svg+xml';
  readonly base64: string;
}

const LOGO_BYTES = 100_000;
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

type FileSetting = 'OPERATOR_LOGO' | 'CONNECT_TEXTS';

/** Reads the files, and reports what is wrong with them. */
export function readOperator(
  { logoPath, textsFolder, ...operator }: OperatorSettings,
  report: (setting: FileSetting, problem: string) => void = refuse,
): Operator {
  const logo = logoPath === undefined ? undefined : readLogo(logoPath);
  if (typeof logo === 'string') report('OPERATOR_LOGO', logo);
  const texts =
    textsFolder === undefined ? BUILT_IN_TEXTS : readConnectTexts(textsFolder, (problem) => report('CONNECT_TEXTS', problem));
  return { ...operator, texts, ...(typeof logo === 'object' && { logo }) };
}

/** The settings were checked at the start: only a file that was changed since can be wrong. */
function refuse(setting: FileSetting, problem: string): never {
  throw new Error(`${setting}: ${problem}`);
}

function readLogo(path: string): Logo | string {
  try {
    return logoOf(readFileSync(path));
  } catch (error) {
    return `must name a file that can be read (${(error as NodeJS.ErrnoException).code})`;
  }
}

/** The image of the file's bytes, or what is wrong with it. */
export function logoOf(bytes: Buffer): Logo | string {
  if (bytes.length > LOGO_BYTES) return `must be at most ${LOGO_BYTES / 1_000} kB`;
  const type = bytes.subarray(0, PNG.length).equals(PNG) ? 'image/png' : isSvg(bytes) ? 'image/svg+xml' : undefined;
  return type ? { type, base64: bytes.toString('base64') } : 'must be an image in PNG or SVG';
}

/** An SVG has its namespace, without which browsers do not show it as an image. */
function isSvg(bytes: Buffer): boolean {
  const text = bytes.toString('utf8');
  return /^\uFEFF?\s*</.test(text) && /<svg[\s>]/.test(text) && text.includes('http://www.w3.org/2000/svg');
}

export function contactAddress(contact: string): string {
  return /^https?:\/\//i.test(contact) ? contact : `mailto:${contact}`;
}

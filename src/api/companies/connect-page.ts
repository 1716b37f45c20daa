import { escapeHtml } from '../../core/escape-html.js';
import { contactAddress, type Operator } from './connect-operator.js';
import type { Language } from './connect-texts.js';

/** A page of the authorization flow. Every member is plain text, which the page escapes. */
export interface ConnectPage {
  readonly status: number;
  readonly tone: 'ask' | 'done' | 'wait' | 'stop' | 'problem';
  readonly title: string;
  readonly text: readonly string[];
  /** A list after the text, and further text after the list. */
  readonly items?: readonly { readonly name: string; readonly note?: string }[];
  readonly further?: readonly string[];
  /** The name of the company that the page is about, if it is known. A customer knows no id. */
  readonly company?: string | undefined;
  readonly action?: { readonly label: string; readonly href: string } | undefined;
  /** Without a contact of the operator, the page names the sender of the link. */
  readonly needsHelp?: boolean;
}

const SIGNS: Readonly<Record<ConnectPage['tone'], string>> = {
  ask: '<path d="M18.5 19a5.5 5.5 0 1 1 8 5c-1.7.9-2.5 2-2.5 4m0 5v.5"/>',
  done: '<path d="m14 25 7 7 14-15"/>',
  wait: '<path d="M24 14v11l7 4"/>',
  stop: '<path d="M16 24h16"/>',
  problem: '<path d="M24 14v13m0 6v.5"/>',
};

const paragraphs = (texts: readonly string[]) => texts.map((text) => `<p>${escapeHtml(text)}</p>`).join('\n');

export function connectPage(page: ConnectPage, operator: Operator, { tag, direction, text }: Language): string {
  const { tone, title, company, items, further = [], action } = page;
  const sign = `<svg viewBox="0 0 48 48" aria-hidden="true"><circle cx="24" cy="24" r="22"/>${SIGNS[tone]}</svg>`;
  return `<!doctype html>
<html lang="${escapeHtml(tag)}" dir="${direction}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(operator.name === undefined ? title : `${title} · ${operator.name}`)}</title><style>${CONNECT_STYLE}</style></head>
<body>${headerOf(operator)}<main class="${tone}">
${sign}
<h1>${escapeHtml(title)}</h1>
${company === undefined ? '' : `<div class="company"><b>${escapeHtml(company)}</b></div>\n`}${paragraphs(page.text)}
${items === undefined ? '' : listOf(items)}${paragraphs(further)}
${action ? `<a class="action" href="${escapeHtml(action.href)}">${escapeHtml(action.label)}</a>` : ''}
</main>${footerOf(page, operator, text)}</body></html>
`;
}

function headerOf({ name, logo }: Operator): string {
  if (name === undefined && logo === undefined) return '';
  // The name is next to the logo, so the logo needs no text of its own.
  const image = logo && `<img src="data:${logo.type};base64,${logo.base64}" alt="">`;
  return `<header>${image ?? ''}${name === undefined ? '' : `<b>${escapeHtml(name)}</b>`}</header>`;
}

function footerOf({ needsHelp }: ConnectPage, { name, contact }: Operator, text: Language['text']): string {
  if (contact === undefined) return needsHelp ? `<footer><p>${escapeHtml(text('contact_sender'))}</p></footer>` : '';
  // The link is put in after the rest is escaped: a mark that no text can hold keeps its place.
  const key = name === undefined ? 'contact' : 'contact_operator';
  const [before = '', after = ''] = text(key, { operator: name ?? '', contact: MARK }).split(MARK);
  const link = `<a href="${escapeHtml(contactAddress(contact))}">${escapeHtml(contact)}</a>`;
  return `<footer><p>${escapeHtml(before)}${link}${escapeHtml(after)}</p></footer>`;
}

const MARK = '\u0000';

function listOf(items: NonNullable<ConnectPage['items']>): string {
  const entries = items.map(
    ({ name, note }) => `<li>${escapeHtml(name)}${note === undefined ? '' : `<small>${escapeHtml(note)}</small>`}</li>`,
  );
  return `<ul>\n${entries.join('\n')}\n</ul>\n`;
}

/** A constant, so that the content security policy can allow exactly this style. */
export const CONNECT_STYLE = `
:root{color-scheme:light dark;--page:#f2f4f7;--card:#fff;--text:#1b2430;--quiet:#5b6675;--line:#e1e6ec;--accent:#1f5fd6;--on-accent:#fff;
--done:#17804a;--wait:#a86500;--stop:#56606d;--problem:#c03a2b}
@media(prefers-color-scheme:dark){:root{--page:#12161c;--card:#1b212a;--text:#e8ecf1;--quiet:#9aa6b5;--line:#2c3542;--accent:#7aa7ff;--on-accent:#0d1522;
--done:#4cc38a;--wait:#e0a33a;--stop:#a3adba;--problem:#f0806f}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:flex;flex-direction:column;align-items:center;justify-content:center;gap:1.25rem;padding:1.25rem;
background:var(--page);color:var(--text);font:1rem/1.6 system-ui,-apple-system,"Segoe UI",sans-serif}
main{width:100%;max-width:27rem;padding:2.25rem 2rem;background:var(--card);border:1px solid var(--line);border-radius:1rem;
box-shadow:0 1px 2px #0000000a,0 12px 32px #0000000f;text-align:center;overflow-wrap:anywhere}
svg{width:3.5rem;height:3.5rem;fill:none;stroke:currentColor;stroke-width:3;stroke-linecap:round;stroke-linejoin:round}
circle{fill:currentColor;fill-opacity:.1;stroke-width:2}
.ask svg{color:var(--accent)}.done svg{color:var(--done)}.wait svg{color:var(--wait)}.stop svg{color:var(--stop)}.problem svg{color:var(--problem)}
h1{margin:1rem 0 .75rem;font-size:1.4rem;line-height:1.3;text-wrap:balance}
p{margin:.5rem 0;color:var(--quiet);text-wrap:pretty}
.company{margin:0 0 1rem;padding:.75rem 1rem;border:1px solid var(--line);border-radius:.6rem}
header{display:flex;align-items:center;justify-content:center;gap:.75rem;max-width:27rem;font-size:1.1rem;overflow-wrap:anywhere}
header img{max-width:12rem;max-height:3.5rem}
ul{margin:.75rem 0 1.25rem;padding:.75rem 1rem .75rem 2rem;border:1px solid var(--line);border-radius:.6rem;text-align:start}
[dir=rtl] ul{padding:.75rem 2rem .75rem 1rem}
li::first-letter{text-transform:uppercase}li small{display:block;color:var(--quiet)}
.action{display:block;margin-top:1.5rem;padding:.75rem 1rem;border-radius:.6rem;background:var(--accent);color:var(--on-accent);
font-weight:600;text-decoration:none}
.action:hover{filter:brightness(1.08)}.action:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
@media(max-width:26rem){main{padding:1.75rem 1.25rem}.company{padding:.6rem .5rem}}
footer{max-width:27rem;color:var(--quiet);font-size:.875rem;text-align:center;overflow-wrap:anywhere}
footer a{color:var(--accent)}
`;

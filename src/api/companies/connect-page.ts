import { escapeHtml } from '../../core/escape-html.js';

/** A page of the authorization flow. Every member is plain text, which the page escapes. */
export interface ConnectPage {
  readonly status: number;
  readonly tone: 'done' | 'wait' | 'stop' | 'problem';
  readonly title: string;
  readonly text: readonly string[];
  /** The company that the page is about; unknown members are undefined. */
  readonly company?: {
    readonly environment: string | undefined;
    readonly companyId: string | undefined;
    readonly name: string | undefined;
  };
  readonly action?: { readonly label: string; readonly href: string };
}

const SIGNS: Readonly<Record<ConnectPage['tone'], string>> = {
  done: '<path d="m14 25 7 7 14-15"/>',
  wait: '<path d="M24 14v11l7 4"/>',
  stop: '<path d="M16 24h16"/>',
  problem: '<path d="M24 14v13m0 6v.5"/>',
};

export function connectPage({ tone, title, text, company, action }: ConnectPage): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Muster</title><style>${CONNECT_STYLE}</style></head>
<body><main class="${tone}">
<svg viewBox="0 0 48 48" aria-hidden="true"><circle cx="24" cy="24" r="22"/>${SIGNS[tone]}</svg>
<h1>${escapeHtml(title)}</h1>
${company ? companyLine(company) : ''}${text.map((paragraph) => `<p>${escapeHtml(paragraph)}</p>`).join('\n')}
${action ? `<a class="action" href="${escapeHtml(action.href)}">${escapeHtml(action.label)}</a>` : ''}
</main><footer>Muster</footer></body></html>
`;
}

function companyLine({ environment, companyId, name }: NonNullable<ConnectPage['company']>): string {
  const badge = environment === 'test' ? ' <span class="badge">test environment</span>' : '';
  if (companyId === undefined) return badge && `<div>${badge}</div>\n`;
  const id = `<small>${escapeHtml(companyId)}</small>`;
  return `<div class="company">${name === undefined ? '' : `<b>${escapeHtml(name)}</b>`}${id}${badge}</div>\n`;
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
.done svg{color:var(--done)}.wait svg{color:var(--wait)}.stop svg{color:var(--stop)}.problem svg{color:var(--problem)}
h1{margin:1rem 0 .75rem;font-size:1.4rem;line-height:1.3;text-wrap:balance}
p{margin:.5rem 0;color:var(--quiet);text-wrap:pretty}
.company{margin:0 0 1rem;padding:.75rem 1rem;border:1px solid var(--line);border-radius:.6rem}
.company b,.company small{display:block}.company small{color:var(--quiet);font:.78rem/1.7 ui-monospace,monospace}
.badge{display:inline-block;padding:0 .6em;border:1px solid var(--line);border-radius:1em;color:var(--quiet);font-size:.75rem}
.action{display:block;margin-top:1.5rem;padding:.75rem 1rem;border-radius:.6rem;background:var(--accent);color:var(--on-accent);
font-weight:600;text-decoration:none}
.action:hover{filter:brightness(1.08)}.action:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
@media(max-width:26rem){main{padding:1.75rem 1.25rem}.company{padding:.6rem .5rem}.company small{font-size:.72rem}}
footer{color:var(--quiet);font-size:.8rem;letter-spacing:.04em}
`;

import { escapeHtml } from '../core/escape-html.js';
import type { PlannedCompany } from './company-spec.js';

const STYLE = `
:root{color-scheme:light dark;--page:#eef3f0;--card:#fff;--text:#1a2721;--quiet:#586b62;--line:#dce5e0;--brand:#0b6e4f;--on-brand:#fff}
@media(prefers-color-scheme:dark){:root{--page:#111815;--card:#1a2420;--text:#e6eeea;--quiet:#98aaa1;--line:#2b3933;--brand:#4fc79b;--on-brand:#08130f}}
*{box-sizing:border-box}
body{font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;margin:0;min-height:100vh;display:flex;align-items:center;justify-content:center;
padding:1.25rem;background:var(--page);color:var(--text)}
main{width:100%;max-width:40rem;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:1rem;
box-shadow:0 1px 2px #0000000a,0 12px 32px #0000000f;overflow-wrap:anywhere}
main:has(.decision){max-width:27rem}
h1{font-size:1.35rem;line-height:1.3;margin:0 0 1rem;text-wrap:balance}
.mark{display:flex;align-items:center;gap:.6rem;margin-bottom:1.25rem;font-weight:600}
.mark svg{width:2.25rem;height:2.25rem}
dl{margin:1.25rem 0;padding:.25rem 1rem;border:1px solid var(--line);border-radius:.6rem}
dt{margin-top:.6rem;color:var(--quiet);font-size:.85rem}dd{margin:0 0 .6rem}dd ul{margin:.25rem 0;padding-left:1.2rem}
label{display:block;margin-bottom:.3rem;font-weight:600}
select,button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:.6rem}
select{width:100%;padding:.65rem .75rem}
button{padding:.4rem 1rem;cursor:pointer}
button:hover{border-color:var(--brand)}
button.main{background:var(--brand);border-color:var(--brand);color:var(--on-brand)}
select:focus-visible,button:focus-visible{outline:3px solid var(--brand);outline-offset:2px}
table{width:100%;border-collapse:collapse}th,td{text-align:left;padding:.5rem;border-bottom:1px solid var(--line)}
td.number,th.number{text-align:right}td form{margin:0}
p{text-wrap:pretty}small,.quiet{color:var(--quiet)}.row{display:flex;gap:.75rem;margin-top:1.25rem}
@media(max-width:26rem){main{padding:1.5rem 1.25rem}}
.decision button{flex:1;padding:.7rem 1rem;font-weight:600}`;

export function htmlPage(title: string, content: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title>
<style>${STYLE}</style></head><body><main>
${content}
</main></body></html>
`;
}

const LOGO =
  '<svg width="36" height="36" viewBox="0 0 36 36" aria-hidden="true"><rect width="36" height="36" rx="8" fill="#0b6e4f"/>' +
  '<path d="M8 27V10l10 10 10-10v17" fill="none" stroke="#fff" stroke-width="3.5"/></svg>';

/** The consent screen: application, scopes, roles, and the choice of a company, with `selected` preselected. */
export function consentPage(consentId: string, companies: Iterable<PlannedCompany>, selected: string | undefined): string {
  const options = [...companies].map(
    ({ companyId, name }) =>
      `<option value="${companyId}"${companyId === selected ? ' selected' : ''}>${escapeHtml(name)}</option>`,
  );
  return htmlPage(
    'Allow access?',
    `<div class="mark">${LOGO} Muster</div>
<h1>Muster asks for access to your company</h1>
<p class="quiet">If you allow it, the application can act for the company that you choose, until you revoke it.</p>
<dl>
<dt>Access scopes</dt><dd><ul><li>Read company</li><li>Read employees and departments</li><li>Read absences and documents</li></ul></dd>
<dt>Required roles</dt><dd>Company administrator</dd>
</dl>
<form method="post" action="/auth/authorize">
<input type="hidden" name="consent" value="${escapeHtml(consentId)}">
<label for="company">Company</label>
<select id="company" name="company_id">
${options.join('\n')}
</select>
<div class="row decision"><button class="main" name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></div>
</form>
<p><small>Sandbox: there is no sign-in here, and the data is invented.</small></p>`,
  );
}

export function authorizeErrorPage(problem: string): string {
  return htmlPage('Authorization failed', `<h1>Authorization failed</h1>\n<p>${escapeHtml(problem)}</p>`);
}

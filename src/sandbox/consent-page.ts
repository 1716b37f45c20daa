import { escapeHtml } from '../core/escape-html.js';
import type { PlannedCompany } from './company-spec.js';
import { htmlPage } from './html-page.js';

const LOGO =
  '<svg width="36" height="36" viewBox="0 0 36 36" aria-hidden="true"><rect width="36" height="36" rx="8" fill="#0b6e4f"/>' +
  '<path d="M8 27V10l10 10 10-10v17" fill="none" stroke="#fff" stroke-width="3.5"/></svg>';

/** The consent screen: application, scopes, roles, and the company to choose (`selected` first, when it is one of them). */
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
<p><small>Sandbox: nobody signs in here, and the data is made up.</small></p>`,
  );
}

export function authorizeErrorPage(problem: string): string {
  return htmlPage('Authorization failed', `<h1>Authorization failed</h1>\n<p>${escapeHtml(problem)}</p>`);
}

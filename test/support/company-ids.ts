/** The id of the nth company, counted as the caller likes: the same in every run. */
export function companyIdOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}

// Descriptions and colours of the lens types, as the API lists them.

const types = new Map();
const sheet = new CSSStyleSheet();

/** Set the lens types and define a CSS class with the colours of each. */
export function setLenses(lenses) {
  for (const lens of lenses) types.set(lens.name, lens);
  sheet.replaceSync(lenses.map(rule).join("\n"));
  document.adoptedStyleSheets = [sheet];
}

function rule({ name, colour, dark_colour: dark }) {
  const selector = `.${CSS.escape(`lens-${name}`)}`;
  return `${selector} { --lens: ${colour}; } @media (prefers-color-scheme: dark) { ${selector} { --lens: ${dark}; } }`;
}

/** The description of a lens as a sentence. */
export const describe = (lens) => sentence(types.get(lens)?.description ?? "");

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");

/** The CSS class that sets the colour of a lens. */
export const lensClass = (lens) => `lens-${lens}`;

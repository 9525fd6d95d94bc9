// What somebody writes who knows `fetch`.

export async function visit(url) {
  try {
    const response = await fetch(url);
    return `${response.status} ${await response.text()}`;
  } catch (error) {
    throw String(error);
  }
}

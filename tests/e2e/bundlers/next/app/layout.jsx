export const metadata = { title: "A bundled call", icons: "data:," };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}

"use client";
import { useEffect } from "react";
import { start } from "../app.js";

export default function Page() {
  useEffect(() => {
    start();
  }, []);
  return <p>A call</p>;
}
